// P6: the time from start to the first answer against bare Elysia, and the memory of the service's process: idle, after
// load, and with many hanging targets.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '#src/lib/time.ts';
import { postgresServer } from '#test/support/log/postgres.ts';
import { makeWorld, type World } from '#test/support/world/service-world.ts';
import { demand, load } from './load.ts';
import { memoryMb, resetPeak, startPeer } from './processes.ts';
import {
  absoluteAtMost,
  interleaved,
  type Measure,
  type Options,
  type Row,
  ratioAtMost,
  row,
  timed,
} from './rounds.ts';

const EXECUTE = '/api/execute/webhook';

export const startMeasure: Measure = {
  name: 'P6',
  title: 'start to the first answer, memory of the process',
  async run(options) {
    const world = await makeWorld({ embedded: true });
    try {
      const first = await world.start();
      await demand(`${first.url}/health/live`);
      await first.stop();
      const sides = {
        async ours() {
          let stop = async () => {};
          const ms = await timed(async () => {
            const service = await world.start({}, 'listening');
            stop = async () => void (await service.stop());
            await demand(`${service.url}/health/live`);
          });
          await stop();
          return ms;
        },
        async peer() {
          let stop = async () => {};
          const ms = await timed(async () => {
            const peer = await startPeer('bare.ts');
            stop = peer.stop;
            await demand(peer.url);
          });
          await stop();
          return ms;
        },
      };
      const rounds = await interleaved(options, sides);
      const titles = { measure: 'P6', title: 'start to the first answer', unit: 'ms', peer: 'bare Elysia' };
      const rows = [row(titles, ratioAtMost(6), rounds)];
      rows.push(...(await firstStart(world, options.rounds)));
      options.say('first starts');
      rows.push(...(await memory(world, options)));
      const notes = [
        'bare Elysia: one route that returns a constant. The memory is resident memory of the relay process, from the operating system.',
      ];
      return { rows, notes };
    } finally {
      await world.end();
    }
  },
};

const absolute = (title: string, unit: string, most: number, values: readonly number[]): Row =>
  row(
    { measure: 'P6', title, unit, peer: '' },
    absoluteAtMost(most),
    values.map((ours) => ({ ours, peer: 0 })),
  );

/** On an empty directory: all the service's own work. */
async function firstStart(world: World, count: number): Promise<Row[]> {
  const starts: { readonly ms: number; readonly peak: number }[] = [];
  for (let n = 0; n < count; n++) {
    const dataDir = join(world.folder, `first-${n}`);
    mkdirSync(dataDir, { mode: 0o700 });
    const begun = performance.now();
    const service = await world.start({ DATA_DIR: dataDir }, 'listening');
    await demand(`${service.url}/health`);
    starts.push({ ms: performance.now() - begun, peak: memoryMb(service.pid).peak });
    await service.stop();
  }
  return [
    absolute(
      'first start on an empty directory',
      'ms',
      2000,
      starts.map(({ ms }) => ms),
    ),
    absolute(
      'memory, peak of a first start',
      'MB',
      350,
      starts.map(({ peak }) => peak),
    ),
  ];
}

async function memory(world: World, { count, say }: Options): Promise<Row[]> {
  const calls = count(40_000, 2000, 50);
  const hanging = count(500, 500, 20);
  const settled = () => sleep(count(3000, 1000, 0));
  const service = await world.start({ DATA_DIR: join(world.folder, 'load') });
  await demand(`${service.url}/health`);
  await settled();
  const idle = memoryMb(service.pid).now;
  await load(service.pid, 64, calls, async (n) => {
    const response = await fetch(`${service.url}${EXECUTE}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: world.target.url(`/?n=${n}`, '127.0.0.1') }),
    });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`${response.status}`);
    world.target.requests.length = 0;
  });
  await settled();
  const after = memoryMb(service.pid).now;
  say(`${calls} calls`);
  world.target.answer(() => undefined);
  // Otherwise the peak would be that of the calls before.
  resetPeak(service.pid);
  const begun = performance.now();
  await load(service.pid, hanging, hanging, async () => {
    const response = await fetch(`${service.url}${EXECUTE}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: world.target.url('/', '127.0.0.1'), timeoutMs: count(12_000, 4000, 1000) }),
    });
    await response.arrayBuffer();
    if (response.status !== 502) throw new Error(`${response.status} of a hanging target`);
  });
  say(`${hanging} hanging targets: all answered in ${Math.round(performance.now() - begun)} ms`);
  const peak = memoryMb(service.pid).peak;
  world.target.answer(() => ({ body: '{"ok":true}' }));
  await service.stop();
  return [
    absolute('memory, idle, embedded stores', 'MB', 200, [idle]),
    ...(await idleWithPostgres(world, settled)),
    absolute(`memory after ${calls} calls`, 'MB', 300, [after]),
    absolute(`memory, peak, ${hanging} hanging targets after that`, 'MB', 350, [peak]),
  ];
}

async function idleWithPostgres(world: World, settled: () => Promise<void>): Promise<Row[]> {
  const postgres = await postgresServer({ own: true });
  try {
    const service = await world.start({
      DATABASE_URL: await postgres.newDatabase(),
      DATA_DIR: join(world.folder, 'with-postgres'),
    });
    await demand(`${service.url}/health`);
    await settled();
    const idle = memoryMb(service.pid).now;
    await service.stop();
    return [absolute('memory, idle, Postgres', 'MB', 150, [idle])];
  } finally {
    await postgres.remove();
  }
}
