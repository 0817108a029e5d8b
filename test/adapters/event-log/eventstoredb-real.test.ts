import process from 'node:process';
import { eventLogContract } from '#test/support/event-log.contract.ts';
import { eventStoreHarness } from '#test/support/event-log-eventstoredb.ts';

const url = process.env.EVENTSTORE_URL ?? '';
eventLogContract(
  'eventstoredb',
  eventStoreHarness(async () => url),
);
