import { eventLogContract } from '#test/support/event-log.contract.ts';
import { sqliteHarness } from '#test/support/event-log-sqlite.ts';

eventLogContract('sqlite', sqliteHarness);
