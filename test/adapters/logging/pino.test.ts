import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { retention } from '#projections/table.ts';
import { type LogLevel, pinoLogger } from '#src/adapters/logging/pino.ts';
import type { LineLogger } from '#src/ports/logger.ts';
import { commonLog, pgliteHarness, rowsFor } from '#test/support/log/read-store.ts';
import { runtimeCommand } from '#test/support/process/runtime.ts';

const CANARY = 'cAnArY';

function logged(write: (log: LineLogger) => void, level: LogLevel = 'info') {
  const lines: string[] = [];
  write(pinoLogger({ level, to: { write: (line) => void lines.push(line) } }));
  return lines.map((line) => JSON.parse(line));
}
const text = (write: (log: LineLogger) => void) => JSON.stringify(logged(write));

test('log: one JSON object a line, with level, time, message and fields', () => {
  const [line] = logged((log) => log.info('listening', { port: 3402, ok: true, big: 7n }));
  const { time, pid, ...rest } = line;
  assert.deepEqual(rest, { level: 'info', msg: 'listening', port: 3402, ok: true, big: '7' });
  assert.equal(new Date(time).toISOString(), time);
  assert.equal(pid, process.pid);
});

test('log: a defect is an error line with its code and the stack of its cause', () => {
  const cause = new TypeError('undefined is not a function');
  const [line] = logged((log) => log.bug('a query failed', { jobId: 'job_1', cause }));
  const { time, pid, cause: shown, ...rest } = line;
  const code = 'internal_error';
  assert.deepEqual(rest, { level: 'error', msg: 'a query failed', code, jobId: 'job_1' });
  assert.deepEqual([shown.name, shown.message], ['TypeError', 'undefined is not a function']);
  assert.match(shown.stack, /pino\.test\.ts/);
});

test('log: the level holds back what is below it', () => {
  const write = (log: LineLogger) => {
    log.info('a');
    log.warn('b');
    log.error('c');
  };
  assert.deepEqual(
    logged(write).map((line) => line.msg),
    ['a', 'b', 'c'],
  );
  assert.deepEqual(
    logged(write, 'warn').map((line) => line.msg),
    ['b', 'c'],
  );
  assert.deepEqual(logged(write, 'silent'), []);
});

test('log: lines of single calls are written at debug alone, masked as all others', () => {
  const lines: string[] = [];
  const to = { write: (line: string) => void lines.push(line) };
  for (const level of ['debug', 'info'] as const) {
    pinoLogger({ level, to }).debug(`see https://a.example/${CANARY}`, { route: '/a/:id', url: CANARY });
  }
  const [{ level, msg, route, url }, ...more] = lines.map((line) => JSON.parse(line));
  assert.deepEqual(
    [level, msg, route, url, more],
    ['debug', 'see https://[masked]', '/a/:id', '[masked]', []],
  );
});

test('log: every line shows what it belongs to, as it is when the line is written', () => {
  const lines: string[] = [];
  let traceId: string | null = null;
  const context = () => (traceId === null ? {} : { traceId, key: CANARY, level: 'x' });
  const log = pinoLogger({ level: 'info', to: { write: (line) => void lines.push(line) }, context });
  log.info('outside');
  traceId = 'one';
  log.warn('inside');
  const [outside, inside] = lines.map((line) => JSON.parse(line));
  assert.equal('traceId' in outside, false);
  assert.deepEqual([inside.traceId, inside.key, inside.level], ['one', '[masked]', 'warn']);
});

test('log: a field cannot pass for a part of the line', () => {
  const [line] = logged((log) => log.warn('true message', { msg: 'forged', level: 'info', time: 'never' }));
  assert.equal(line.msg, 'true message');
  assert.equal(line.level, 'warn');
  assert.equal(line.msg_, 'forged');
});

test('log: fields named after secrets are masked, however deep and however they are written', () => {
  const secrets = {
    authorization: CANARY,
    Cookie: CANARY,
    'set-cookie': [CANARY],
    'X-PAYMENT': CANARY,
    url: `https://hooks.example/${CANARY}`,
    body: { text: CANARY },
    headers: { 'x-api-key': CANARY },
    idempotency_key: CANARY,
    hmacSecret: CANARY,
    address: CANARY,
  };
  const line = text((log) => log.info('m', { ...secrets, inner: { list: [secrets] } }));
  assert.ok(!line.includes(CANARY), line);
  assert.ok(line.includes('[masked]'));
});

test('log: URLs, credentials and connection secrets are masked in any text; an own origin stays', () => {
  const line = text((log) => {
    log.info(`called https://hooks.example/services/${CANARY}?q=1`);
    log.info('m', { note: `postgres://relay:${CANARY}@db.example:5432/relay failed` });
    log.info('m', { note: `http://user:${CANARY}@proxy.example` });
    log.info('m', { note: `Authorization: Bearer ${CANARY}.x-y_z==` });
    log.info('m', { note: `host=db password=${CANARY} user=relay; token: "${CANARY} two"` });
    log.info('listening at http://127.0.0.1:3402');
  });
  assert.ok(!line.includes(CANARY), line);
  assert.ok(line.includes('listening at http://127.0.0.1:3402'));
  assert.ok(line.includes('user=relay'));
});

test('log: a cause keeps name, message, code and stack, and its own causes', () => {
  const inner = Object.assign(new TypeError('socket gone'), { code: 'ECONNRESET' });
  const [line] = logged((log) =>
    log.error('fault', { cause: new Error('append failed', { cause: inner }), try: 2 }),
  );
  assert.equal(line.try, 2);
  assert.equal(line.cause.message, 'append failed');
  assert.match(line.cause.stack, /pino\.test\.ts/);
  assert.equal(line.cause.cause.name, 'TypeError');
  assert.equal(line.cause.cause.code, 'ECONNRESET');
  const [many] = logged((log) => log.error('fault', { cause: new AggregateError([inner], 'all failed') }));
  assert.equal(many.cause.errors[0].message, 'socket gone');
});

test('log: nothing of a secret comes out by way of a cause', () => {
  const line = text((log) => {
    const error = Object.assign(new Error(`connect to postgres://relay:${CANARY}@db/relay`), {
      hostname: CANARY,
      query: `select '${CANARY}'`,
      parameters: [CANARY],
      config: { url: `https://${CANARY}.example`, note: `see https://${CANARY}.example` },
    });
    log.error('fault', { cause: error });
    log.error('fault', { cause: `fetch of https://${CANARY}.example failed` });
    log.error('fault', { cause: { inner: { url: CANARY } } });
  });
  assert.ok(!line.includes(CANARY), line);
});

const harness = pgliteHarness();
after(() => harness.end());

test('log: a failed query is logged without its values, in warnings and in errors', async () => {
  const db = await rowsFor(await commonLog(), await harness.fresh());
  const row = { id: CANARY, jobsBefore: `two\nlines of ${CANARY}`, jobsPurged: 1, receiptsPurged: 1 };
  await db.insert(retention).values(row);
  const missing = sql`insert into no_such_table values (${JSON.stringify([{ jws: CANARY, payer: CANARY }])})`;
  const failing = [
    () => db.insert(retention).values(row),
    () => db.execute(missing),
    () => db.transaction((tx) => tx.execute(missing)),
    () => db.execute(sql`select ${CANARY}::int`),
    () => db.execute(sql`select ${`{"${CANARY}`}::json`),
    () =>
      db.execute(
        sql`insert into jobs select * from json_populate_recordset(null::jobs, ${`[{"id": "${CANARY}"}]`})`,
      ),
  ];
  for (const fail of failing) {
    const cause = await fail().then(
      () => assert.fail('it does not fail'),
      (error) => error,
    );
    assert.ok(JSON.stringify(cause).includes(CANARY), 'the error itself contains the values');
    const wrapped = new Error('fault', { cause });
    const lines = logged((log) => {
      log.warn('m', { cause });
      log.error('m', { cause });
      log.warn('m', { cause: wrapped, inner: { cause } });
      log.info(`m ${cause.message}`, { note: cause.stack });
    });
    assert.ok(!JSON.stringify(lines).includes(CANARY), JSON.stringify(lines));
    assert.deepEqual(lines[0].cause, lines[1].cause);
    assert.match(lines[0].cause.message, /^Failed query: (insert|select) .*\nparams: \[masked\]$/s);
    assert.match(lines[0].cause.stack, /params: \[masked\]\s+at /, 'the frames stay');
    assert.match(lines[0].cause.cause.code, /^\w{5}$/, 'what the database said stays');
  }
});

test("log: a warning's cause is a stranger's text too", () => {
  const line = text((log) => log.warn('m', { cause: `see https://${CANARY}.example` }));
  assert.ok(!line.includes(CANARY.toLowerCase()) && !line.includes(CANARY), line);
});

test('log: whatever was thrown makes a line and no second fault', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const trap = Object.defineProperty({}, 'boom', {
    enumerable: true,
    get() {
      throw new Error('no');
    },
  });
  const hostile = new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('no');
      },
    },
  );
  const loop = new Error('loop');
  loop.cause = loop;
  const causes = [null, 7, 'text', Symbol('s'), () => 1, circular, trap, hostile, loop, new Uint8Array(9)];
  const lines = logged((log) => {
    for (const cause of causes) log.error('fault', { cause });
  });
  assert.equal(lines.length, causes.length);
  assert.ok(lines.every((line) => line.msg === 'fault'));
  assert.equal(lines[6].cause.boom, '[unreadable]');
});

test('log: whatever a field is makes a line too', () => {
  const circular: Record<string, unknown> = { name: 'c' };
  circular.self = circular;
  const [line] = logged((log) => log.info('m', circular));
  assert.equal(line.name, 'c');
  const hostile = new Proxy({}, { ownKeys: () => assert.fail('no') });
  const lines = logged((log) => log.info('m', { hostile, n: undefined, f: () => 1 }));
  assert.equal(lines[0].msg, 'm');
});

test('log: every line is written before the call returns: a process that dies at once loses none', async () => {
  const script = new URL('./log-and-block.ts', import.meta.url).pathname;
  const [command, args] = runtimeCommand(script, ['2000']);
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  await new Promise((resolve) => {
    child.on('close', resolve);
    child.stdout.on('data', (chunk) => {
      out += chunk;
      if (out.includes('"n":1999') && out.endsWith('\n')) child.kill('SIGKILL');
    });
  });
  const lines = out.trimEnd().split('\n');
  assert.equal(lines.length, 2000);
  assert.equal(JSON.parse(lines[1999] ?? '').n, 1999);
});
