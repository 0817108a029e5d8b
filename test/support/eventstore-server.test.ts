// The test server and, where there is one (EVENTSTORE_URL), a real one are asked the same questions.
import { after } from 'node:test';
import { describeEventStoreServer } from './eventstore-server.contract.ts';
import { type EventStoreServer, startEventStoreServer } from './eventstore-server.ts';
import { requirement } from './requirements.ts';

const given = process.env.EVENTSTORE_URL;
let shared: Promise<EventStoreServer> | null = null;
after(async () => (await shared)?.end());

describeEventStoreServer({
  name: 'the test server',
  needs: { skip: false },
  url: async () => {
    shared ??= startEventStoreServer();
    return (await shared).url;
  },
});
describeEventStoreServer({
  name: 'a real server',
  needs: requirement('EventStoreDB', given !== undefined, 'no EVENTSTORE_URL'),
  url: async () => given ?? '',
});
