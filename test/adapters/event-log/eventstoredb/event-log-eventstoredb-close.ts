// A process that makes every kind of call on a server's log, closes the log, and must then end. Argument: the server’s URL.

import process from 'node:process';
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { follow, freshStream, newEvents } from '#test/support/contract/event-log-fixtures.ts';

const [url = ''] = process.argv.slice(2);
const log = eventStoreDbEventLog({ url, timeLimitMs: 5000 });
const follower = follow(log, { after: null });
await log.append(freshStream(), 'no_stream', newEvents(2));
await follower.until(() => follower.events().length >= 2, 'two events');
follower.ended.catch(() => {});
await log.close();
console.log('closed');
