import { eventLogContract } from '#test/support/event-log.contract.ts';
import { ownServerHarness } from '#test/support/event-log-eventstoredb.ts';

eventLogContract('eventstoredb', ownServerHarness);
