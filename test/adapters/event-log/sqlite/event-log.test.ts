import { eventLogContract } from '#test/support/contract/event-log.contract.ts';
import { sqliteHarness } from '#test/support/log/event-log-sqlite.ts';

eventLogContract('sqlite', sqliteHarness);
