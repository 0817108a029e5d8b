// Secrets of a payment that must not be stored: its signature, which any reader could submit; the keys in the operator's
// URLs; and the caller's input. This holds in every failure, and for any answer of facilitator and chain.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { CONDITIONS, sentenceOf } from '#src/domain/monitoring/conditions.ts';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { altered, type Payment, resigned } from '#test/support/chain/payer.ts';
import { filesBelow, wordsIn } from '#test/support/given/canaries.ts';
import { type Ended, logLines, waitFor } from '#test/support/process/service.ts';
import { assertAskedToPay, assertDelivered, assertSaid, GUIDED } from '#test/support/world/paid-call.ts';
import { get, post } from '#test/support/world/service-world.ts';
import { ASIDE, KEY, makeSecretWorld, OPERATORS, SENT, type SecretWorld, WORDS } from './secret-payments.ts';
import {
  headerNeedles,
  loginNeedles,
  type Needle,
  nonceNeedles,
  scanner,
  signatureNeedles,
  signaturesInHeaders,
} from './signature-scan.ts';

const needs = needsAnvil();

describe('secrets of payments', needs, () => {
  let world: SecretWorld;
  let ended: Ended;
  /** Of a guided call. */
  let decisionId: string;
  before(async () => {
    world = await makeSecretWorld();
  });
  after(() => world.end());

  const well = () => {
    world.paid.proxy.rule(() => 'pass');
    world.facilitator.mode('pass');
    world.rpc.mode('pass');
  };
  const settleFails = (fault: 'cut' | 'json_500') => () =>
    world.paid.proxy.rule(({ kind, nth }) => (kind === 'settle' && nth === 1 ? fault : 'pass'));

  test('paid in either version, repeated in the other, with another body, with none', async () => {
    for (const sample of await world.payers('good')) {
      await world.assertServed(sample);
      const version = sample.n === 0 ? 1 : 2;
      assertDelivered(await world.pay(sample, { version }), sample, { version, replay: true });
      const request = { ...sample.request, body: 1 };
      assertSaid(await world.pay(sample, { request }), 409, 'payment_reused');
      assertSaid(await world.pay(sample, { request: `{"url":"${SENT[0]}` }), 400, 'invalid_json');
    }
  });

  test('settlements of unknown outcome, looked up on a chain that answers, fails, is down', async () => {
    const { rpc, assertServedLater } = world;
    const lost = () => {
      settleFails('cut')();
      rpc.mode('cut');
    };
    await assertServedLater('looked-up', 'payment_unconfirmed', lost, () => rpc.mode('pass'));
    for (const mode of ['repeat', 'refuse', 'cut'] as const) {
      const asked = rpc.seen.length;
      const fails = settleFails('json_500');
      await assertServedLater(`chain-${mode}`, 'payment_unconfirmed', fails, () => rpc.mode(mode));
      assert.ok(rpc.seen.length > asked, 'the chain was asked');
      well();
    }
    await assertServedLater('chain-down', 'payment_unconfirmed', settleFails('json_500'), rpc.down);
    await rpc.up();
    well();
  });

  test('a facilitator that is down, disconnects, or repeats its whole input', async () => {
    const { paid, facilitator, assertServedLater } = world;
    await assertServedLater('down', 'facilitator_unavailable', facilitator.down, facilitator.up);
    for (const mode of ['cut', 'repeat'] as const) {
      const fails = () => facilitator.mode(mode);
      await assertServedLater(`verify-${mode}`, 'facilitator_unavailable', fails, well);
    }
    for (const mode of ['cut', 'repeat', 'refuse'] as const) {
      for (const sample of await world.payers(`settle-${mode}`)) {
        paid.proxy.rule(() => {
          // The verify has come through; the settle call that follows it does not.
          facilitator.mode(mode);
          return 'pass';
        });
        assertSaid(await world.pay(sample), 503, 'payment_unconfirmed');
        well();
        await world.assertServed(sample);
      }
    }
  });

  test('a facilitator that refuses our login and repeats it: named, not charged, served later', async () => {
    const refused = {
      ok: false,
      reason: 'login_refused',
      message: 'The facilitator refuses our login: paid calls answer 503, nothing is charged.',
    };
    const health = async () => {
      const url = `${world.service.url}/health`;
      return (await get<{ checks: { facilitator: unknown } }>(url)).body.checks.facilitator;
    };
    await world.assertServedLater(
      'login',
      'facilitator_unavailable',
      () => world.facilitator.mode('refuse_login'),
      async () => {
        assert.deepEqual(await health(), refused);
        well();
      },
    );
    // What it supports is asked every 10 s.
    await waitFor('health is ok again', async () => isDeepStrictEqual(await health(), { ok: true }));
  });

  test('refused by the service before any call, and by the facilitator', async () => {
    for (const sample of await world.payers('refused')) {
      const { payment } = sample;
      const spoilt = [
        altered(payment, (_, { authorization }) => Object.assign(authorization, { value: '1' })),
        await resigned(payment, (authorization) => Object.assign(authorization, { validBefore: '9' })),
        // A contract wallet's signature, without a contract.
        altered(payment, (_, signed) => Object.assign(signed, { signature: `${signed.signature}00` })),
      ];
      for (const bad of spoilt) assertAskedToPay(await world.pay(sample, { payment: bad }));
      world.facilitator.mode('refuse');
      assertAskedToPay(await world.pay(sample));
      well();
      await world.assertServed(sample);
    }
  });

  test('a guided call after a decision', async () => {
    const action = world.action('decided');
    const url = `${world.service.url}/api/decide/webhook`;
    const decided = await post<{ readonly decisionId: string }>(url, { action });
    ({ decisionId } = decided.body);
    const bare = { url: undefined, headers: undefined, body: undefined, idempotencyKey: undefined };
    for (const sample of await world.payers('guided', { ...bare, decisionId, action })) {
      await world.assertServed(sample, { route: GUIDED });
    }
  });

  const loginOf = () => loginNeedles(world.apiKey, world.tokens);
  const search = (...of: readonly ((name: string, payment: Payment) => readonly Needle[])[]) =>
    scanner([
      ...loginOf(),
      ...of.flatMap((needles) => [...world.payments].flatMap((named) => needles(...named))),
    ]);

  test('all secrets were sent, and are found where they belong', () => {
    const { facilitator, rpc, samples, paid } = world;
    const asked = facilitator.seen.join('\n');
    const found = search(signatureNeedles)(asked).join('\n');
    assert.ok(world.tokens.length > 20);
    const login = { asked: asked + world.tokens.join('\n'), secret: world.apiKey.secret };
    assert.deepEqual([...new Set(search()(login.asked + login.secret))].sort(), ['a token', 'the API key']);
    for (const { path } of samples)
      assert.ok(found.includes(`r of ${path} `) && found.includes(`s of ${path} `));
    const called = paid.target.requests.map(({ head, body }) => head + body).join('\n');
    assert.deepEqual(wordsIn(WORDS, login.asked + rpc.seen.join('\n')), OPERATORS);
    assert.deepEqual(wordsIn(WORDS, called), SENT);
    const [first] = samples;
    for (const version of [1, 2] as const) {
      assert.deepEqual(wordsIn(WORDS, JSON.stringify(first?.payment.headers[version])), [ASIDE]);
    }
  });

  test('the caller’s own answer: no signature, no secret of the operator', () => {
    const scan = search(signatureNeedles);
    const statuses = new Set(world.own.map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [200, 400, 402, 409, 503]);
    for (const { status, headers, body, paid } of world.own) {
      const text = JSON.stringify([[...headers], body, paid]);
      assert.deepEqual(scan(text), [], text);
      // A disclosure opens to its caller what that caller sent.
      const opened = status === 200 ? [...SENT, KEY] : [];
      const words = wordsIn(WORDS, text).filter((word) => !opened.includes(word));
      assert.deepEqual(words, [], text);
    }
  });

  test('public answers: none of them, no nonce; and no payer but in a receipt', async () => {
    const scan = search(signatureNeedles, headerNeedles, nonceNeedles);
    const bought = world.own.flatMap(({ body }) => (body.job ? [body] : []));
    const lists = [
      ...bought.map(({ job }) => `/api/jobs/${job.id}`),
      `/api/decisions/${decisionId}`,
      '/api/decisions/recent?limit=50',
      '/api/proofs/recent?limit=50',
      ...['/api/monitoring/executions', '/api/trust', '/openapi.json', '/health', '/.well-known/did.json'],
      '/metrics',
    ];
    const receipts = bought.flatMap(({ job, receipt }) => [
      ...[`/api/receipts/${receipt.id}`, `/api/verify/receipts/${receipt.id}`],
      ...[`/api/verify/jobs/${job.id}`, `/proof/${job.id}`],
    ]);
    assert.ok(bought.length > 20, `${bought.length}`);
    for (const path of new Set([...lists, ...receipts])) {
      const response = await fetch(`${world.service.url}${path}`);
      assert.equal(response.status, 200, path);
      const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`;
      assert.deepEqual([scan(text), wordsIn(WORDS, text)], [[], []], path);
      if (receipts.includes(path)) continue;
      for (const { payer } of world.samples) {
        assert.ok(!text.toLowerCase().includes(payer.address.slice(2).toLowerCase()), path);
      }
    }
  });

  test('no file of the data directory, running or stopped; a nonce is in the log alone', async () => {
    const [scan, findNonces] = [search(signatureNeedles, headerNeedles), search(nonceNeedles)];
    const assertClean = (...names: readonly string[]) => {
      const files = filesBelow(world.paid.dataDir);
      for (const name of names)
        assert.ok(
          files.some(([path]) => path.endsWith(name)),
          name,
        );
      const logged = new Set<string>();
      for (const [path, bytes] of files) {
        assert.deepEqual([scan(bytes), wordsIn(WORDS, bytes)], [[], []], path);
        const nonces = findNonces(bytes);
        if (path.includes('/events.db')) for (const name of nonces) logged.add(name.split(' ')[2] ?? '');
        else assert.deepEqual(nonces, [], path);
      }
      // The search works.
      assert.deepEqual([...logged].sort(), world.samples.map(({ path }) => path).sort());
    };
    assertClean('/events.db', '/events.db-wal');
    ended = await world.service.stop();
    assertClean('/events.db');
  });

  test('no line of the log', () => {
    assert.deepEqual([ended.code, ended.stderr], [0, '']);
    const messages = logLines(ended.stdout).map(({ msg }) => msg);
    for (const message of [
      sentenceOf('chainLookUps', 'no_answer'),
      sentenceOf('facilitator', 'failing'),
      CONDITIONS.facilitator.over,
    ])
      assert.ok(messages.includes(message), messages.join());
    assert.deepEqual(search(signatureNeedles, headerNeedles, nonceNeedles)(ended.stdout), []);
    assert.deepEqual(wordsIn(WORDS, ended.stdout), []);
  });

  test('the search finds a signature that is in the log, and every form of it', async () => {
    const [sample] = world.samples;
    assert.ok(sample);
    const { payment } = sample;
    const folder = mkdtempSync(join(world.paid.folder, 'planted-'));
    const file = join(folder, 'events.db');
    copyFileSync(join(world.paid.dataDir, 'events.db'), file);
    const scan = scanner(signatureNeedles('it', payment));
    const found = () => filesBelow(folder).flatMap(([, bytes]) => scan(bytes));
    assert.deepEqual(found(), []);
    const log = await sqliteEventLog({ file });
    const signature = String(payment.payload.payload.signature);
    const event = { id: randomUUID(), type: 'PaymentReserved', data: { signature }, metadata: {} };
    await log.append('payment-planted', 'no_stream', [event]);
    await log.close();
    assert.deepEqual([...new Set(found())].sort(), ['r of it', 's of it']);
    for (const { name, bytes } of signatureNeedles('it', payment)) {
      assert.deepEqual(scan(Buffer.concat([Buffer.from('?'), bytes, Buffer.from('?')])), [name], `${bytes}`);
    }
    const windows = scanner(headerNeedles('it', payment));
    for (const part of signaturesInHeaders(payment)) {
      assert.ok(part.length > 160);
      for (let at = 0; at + 40 <= part.length; at++) {
        assert.deepEqual(windows(part.slice(at, at + 40)), ['header of it'], `${at}`);
      }
    }
  });
});
