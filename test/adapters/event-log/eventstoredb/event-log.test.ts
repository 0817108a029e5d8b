import { eventLogContract } from '#test/support/contract/event-log.contract.ts';
import { ownServerHarness } from '#test/support/log/event-log-eventstoredb.ts';

eventLogContract('eventstoredb', ownServerHarness);
