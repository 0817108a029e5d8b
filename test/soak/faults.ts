// The faults of a soak, one a minute in turn, each undone within the minute.

import { sleep } from '#src/lib/time.ts';
import type { EventStoreServer } from '#test/support/log/eventstore-server.ts';
import type { Service } from '#test/support/process/service.ts';
import type { PaidWorld } from '#test/support/world/paid-world.ts';

export type Fault = { readonly name: string; readonly run: () => Promise<void> };

export type Faulty = {
  readonly world: PaidWorld;
  /** The process whose memory is measured; it is never killed. */
  readonly measured: () => Service;
  /** A second process, which is killed and started again; null: the tier has one process. */
  readonly restart: (() => Promise<void>) | null;
  readonly eventStore: EventStoreServer | null;
  readonly postgres: { stop(): Promise<void>; start(): Promise<void> } | null;
};

const HELD_MS = 15_000;

export function faultsOf({ world, measured, restart, eventStore, postgres }: Faulty): readonly Fault[] {
  const { proxy, node } = world;
  const held = async (begin: () => unknown, end: () => unknown) => {
    await begin();
    try {
      await sleep(HELD_MS);
    } finally {
      await end();
    }
  };
  return [
    ...(restart === null ? [] : [{ name: 'kill -9, and a new process', run: restart }]),
    ...(eventStore === null
      ? []
      : [
          {
            name: 'event log frozen',
            run: () =>
              held(
                () => eventStore.faults.freeze(),
                () => eventStore.faults.thaw(),
              ),
          },
          { name: 'connections of the event log dropped', run: async () => eventStore.faults.drop() },
        ]),
    ...(postgres === null
      ? []
      : [
          {
            name: 'Postgres stopped',
            run: () =>
              held(
                () => postgres.stop(),
                () => postgres.start(),
              ),
          },
        ]),
    {
      name: 'facilitator fails',
      run: () =>
        held(
          () =>
            proxy.rule(({ nonce }) => (Number.parseInt(nonce.slice(-1), 16) % 2 === 0 ? 'cut' : 'http_500')),
          () => proxy.rule(() => 'pass'),
        ),
    },
    {
      name: 'facilitator slow',
      run: () =>
        held(
          () => proxy.rule(() => sleep(3000).then(() => 'pass' as const)),
          () => proxy.rule(() => 'pass'),
        ),
    },
    {
      name: 'node of the chain silent',
      run: () =>
        held(
          () => node.blind(true),
          () => node.blind(false),
        ),
    },
    {
      name: 'wall clock stepped',
      run: () =>
        held(
          () => measured().signal('SIGUSR2'),
          () => measured().signal('SIGUSR2'),
        ),
    },
    {
      name: 'process frozen',
      run: async () => {
        measured().signal('SIGSTOP');
        await sleep(5000);
        measured().signal('SIGCONT');
      },
    },
  ];
}
