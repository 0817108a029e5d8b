// Many concurrent calls on a busy event loop: no call to a good target times out.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { httpsOutbound } from '#src/adapters/outbound/https.ts';
import { chooseDials } from '#src/domain/destination/policy.ts';
import { LONG } from '#test/support/given/property-runs.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import { makeTestCa } from '#test/support/process/test-ca.ts';
import { clock, LOOPBACK, requestTo, rulesWith } from './lab.ts';

/** A Node process: the test is of the client, and Bun's server has the same queue as Bun's client. */
const TARGET = `
  const { cert, key } = JSON.parse(process.argv[1]);
  require('node:https')
    .createServer({ cert, key }, (request, response) => request.resume().on('end', () => response.end('ok')))
    .listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;

/** Fewer calls for Deno, whose handshakes are slower. It has no such queue. */
const [CALLS, AT_ONCE] = runtimeName === 'deno' ? [LONG ? 120 : 40, 8] : [1500, 64];
/** No busy machine decides it. */
const TIMEOUT_MS = 30_000;
/**
 * The longest call of a run of so many ms. In a queue that serves the newest first, a call waits nearly until the run ends (99 %);
 * without one, it takes a tenth of the run. Deno has no such queue, and its few calls take longer.
 */
const longestOf = (runMs: number) => (runtimeName === 'deno' ? TIMEOUT_MS : runMs / 2);
/** Other work in each turn of the event loop. */
const BUSY_MS = 8;

test('the handshakes of many concurrent calls all complete on a busy event loop', async () => {
  const ca = makeTestCa();
  const identity = JSON.stringify(ca.issue({ names: ['127.0.0.1'] }));
  const target = spawn('node', ['-e', TARGET, identity], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [port] = await once(target.stdout, 'data');
    const outbound = httpsOutbound({
      resolver: { resolve: async () => ({ outcome: 'not_found' }) },
      permits: () => true,
      chooseDials: (_, addresses) =>
        chooseDials(request.target, addresses, describeAddress, rulesWith({ allow: LOOPBACK })),
      // One root: with those of the system as well, Deno would read all of them for every connection.
      secureContext: createSecureContext({ ca: ca.pem }),
      keptHeaders: [],
      clock,
    });
    const request = requestTo(`https://127.0.0.1:${String(port).trim()}/`, { timeoutMs: TIMEOUT_MS });
    const outcomes = new Map<string, number>();
    const busy = keepBusy();
    let left = CALLS;
    let longestMs = 0;
    const begun = performance.now();
    const caller = async () => {
      while (left-- > 0) {
        const { errorCategory, timings } = await outbound.send(request);
        longestMs = Math.max(longestMs, timings.totalMs);
        outcomes.set(errorCategory ?? 'ok', (outcomes.get(errorCategory ?? 'ok') ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, caller));
    busy.stop();
    assert.deepEqual([...outcomes], [['ok', CALLS]]);
    const runMs = performance.now() - begun;
    assert.ok(longestMs <= longestOf(runMs), `${longestMs} of ${runMs} ms`);
  } finally {
    target.kill('SIGKILL');
    await once(target, 'exit');
  }
});

function keepBusy(): { stop(): void } {
  let going = true;
  const turn = () => {
    if (!going) return;
    for (const end = performance.now() + BUSY_MS; performance.now() < end; );
    setImmediate(turn);
  };
  turn();
  return {
    stop() {
      going = false;
    },
  };
}
