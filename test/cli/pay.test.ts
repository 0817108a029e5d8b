// relay pay against the real service and a facilitator double: it pays once, never twice.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { invalid } from '#test/support/chain/facilitator-double.ts';
import { runCli } from '#test/support/process/cli.ts';
import { startCli } from '#test/support/process/cli-process.ts';
import type { FrontAnswer } from '#test/support/process/relay-front.ts';
import { waitFor } from '#test/support/process/service.ts';
import { ALL_GOOD, factsOf, isPaid, payWorld } from './pay-world.ts';

const it = payWorld();
const { scene, run, books } = it;

describe('relay pay: buys one call', () => {
  test('delivered, charged once, every fact holds; and the key is not printed', async () => {
    const book = books();
    const body = { order: 4711, total: '12.50' };
    const bought = scene('/good', '--body', JSON.stringify(body), '--header', 'X-Order: 1', '--key', 'k-1');
    const result = await run(bought);
    assert.deepEqual([result.code, result.stderr], [0, '']);
    const { ok, outcome, job, receipt, settlement, verification } = JSON.parse(result.stdout);
    assert.deepEqual([ok, outcome, job.status], [true, 'delivered', 'succeeded']);
    assert.deepEqual([verification.ok, verification.receiptId], [true, receipt.id]);
    assert.match(settlement.transaction, /^0x[0-9a-f]{64}$/);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    const [request, ...others] = book.calls(bought);
    assert.deepEqual([others.length, book.charges(), book.payments().length], [0, 1, 1]);
    assert.deepEqual(JSON.parse(Buffer.from(request?.body ?? '').toString()), body);
    assert.equal(request?.headers['x-order'], '1');
    assert.ok(!result.stdout.includes(bought.key.slice(2)));
  });

  test('the JSON output is an execution response that relay verify accepts, with its disclosures', async () => {
    const bought = scene('/disclosed', '--body', '{"a":1}');
    const { stdout } = await run(bought);
    assert.ok(JSON.parse(stdout).disclosures.length > 0);
    assert.equal(typeof JSON.parse(stdout).checkpoint, 'string');
    const [file, keys] = [join(it.world.folder, 'pay.json'), join(it.world.folder, 'jwks.json')];
    writeFileSync(file, stdout);
    writeFileSync(keys, await (await fetch(`${it.front.url}/.well-known/jwks.json`)).text());
    const verified = await runCli(['verify', file, '--keys', keys, '--disclose', file, '--json']);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.match(verified.stdout, /"target_url"/);
  });

  test('the method and a body from a file', async () => {
    const file = join(it.world.folder, 'body.json');
    writeFileSync(file, '[1,2]');
    const bought = scene('/by-file', '--method', 'put', '--body-file', file);
    const book = books();
    assert.equal((await run(bought)).code, 0);
    const [request] = book.calls(bought);
    assert.deepEqual([request?.method, Buffer.from(request?.body ?? '').toString()], ['PUT', '[1,2]']);
  });

  test('as text: the terms, the payment, and every check marked as good', async () => {
    const bought = scene('/words');
    const args = bought.args.filter((arg) => arg !== '--json');
    const { code, stdout, stderr } = await run({ ...bought, args });
    assert.equal(code, 0);
    // Before the payment is sent, so that it is known after a crash.
    assert.match(stderr, /^relay: idempotency key: pay-[0-9a-f-]{36}\n$/);
    assert.equal(stdout.match(/^ {2}✓ /gm)?.length, 5 + 7 + 4);
    assert.match(stdout, /\n {2}✓ price {7}\$0\.003\n/);
    assert.doesNotMatch(stdout, /✗|\u001b|undefined/);
    assert.match(stdout, /\nDelivered\.\n$/);
  });

  test('--show-response: what the target answers, once, as the receipt commits to it', async () => {
    const bought = scene('/shown', '--show-response', '--key', 'k-shown');
    const first = await run(bought);
    assert.equal(first.code, 0, first.stdout + first.stderr);
    const { response } = JSON.parse(first.stdout);
    assert.deepEqual([response.status, response.encoding, typeof response.body], [200, 'utf8', 'string']);
    assert.equal(response.headers['content-type'], 'application/json');
    const again = JSON.parse((await run(bought)).stdout);
    assert.deepEqual([again.idempotentReplay, again.response], [true, null]);
    const other = scene('/shown-as-text', '--show-response');
    const text = await run({ ...other, args: other.args.filter((one) => one !== '--json') });
    assert.match(
      text.stdout,
      /Answer of the target, as the receipt commits to it\n +status +200, \d+ bytes\n/,
    );
  });

  test('a failed target is paid for and verified: exit 1', async () => {
    const bought = scene('/fails');
    const book = books();
    const result = await run(bought);
    const { ok, outcome, job } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, ok, outcome, job.responseStatus], [1, false, 'target_failed', 500]);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.equal(book.charges(), 1);
  });
});

describe('relay pay: never pays twice', () => {
  test('lost answers: the same payment is presented again and returns a replay', async () => {
    const bought = scene('/lost');
    const book = books();
    let lost = 0;
    it.front.rule(async ({ headers }, forward) => {
      const answer = await forward();
      return isPaid(headers) && lost++ < 2 ? null : answer;
    });
    const result = await run(bought);
    it.front.rule(null);
    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.equal(JSON.parse(result.stdout).idempotentReplay, true);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.deepEqual([book.payments().length, new Set(book.payments()).size], [3, 1]);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
    assert.match(result.stderr, /no answer; the same request is sent again in \d+ s/);
  });

  test('a refusal as text: the payment may still be charged', async () => {
    const bought = scene('/poor');
    const args = bought.args.filter((arg) => arg !== '--json');
    it.facilitator.scriptVerify(invalid('insufficient_funds'));
    const { code, stdout } = await run({ ...bought, args });
    assert.equal(code, 1);
    assert.match(stdout, /\nThe relay refused[^\n]*answer: expected [^\n]*insufficient_funds[^\n]*\n$/);
    assert.match(stdout, /\n {2}The signed payment can be charged until 2\d{3}-/);
  });
});

/** Killed after the payment was sent and before its answer came. */
async function killedBuyer(args: readonly string[], key: string) {
  let held = false;
  it.front.rule(async ({ headers }, forward) => {
    const answer = await forward();
    if (!isPaid(headers)) return answer;
    held = true;
    return new Promise<FrontAnswer>(() => undefined);
  });
  const first = startCli(args, { env: { RELAY_BUYER_PRIVATE_KEY: key } });
  await waitFor('the answer to the payment', () => held);
  first.signal('SIGKILL');
  await first.ended;
  it.front.rule(null);
}

describe('relay pay: a buyer that is killed after sending', () => {
  test('with --key, a repeat returns the result, and the call is charged once', async () => {
    const bought = scene('/crash', '--body', '{"a":1}', '--key', 'crash');
    const book = books();
    await killedBuyer(bought.args, bought.key);
    const result = await run(bought);
    const { idempotentReplay, earlierPayment, outcome } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, idempotentReplay, earlierPayment, outcome], [0, true, true, 'delivered']);
    assert.deepEqual(factsOf(result), ALL_GOOD);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
  });

  test('with --ledger, a repeat presents the same payment: no second one is ever signed', async () => {
    const ledger = join(it.world.folder, 'killed.ndjson');
    const budget = ['--key', 'crash-2', '--ledger', ledger, '--budget-usd', '0.003'];
    const bought = scene('/crash-2', '--body', '{"a":1}', ...budget);
    const book = books();
    await killedBuyer(bought.args, bought.key);
    assert.equal(readFileSync(ledger, 'utf8').trimEnd().split('\n').length, 1);
    const result = await run(bought);
    const { idempotentReplay, earlierPayment } = JSON.parse(result.stdout);
    assert.deepEqual([result.code, idempotentReplay, earlierPayment], [0, true, false], result.stdout);
    const authorizations = book.payments().map((header) => {
      const { payload } = JSON.parse(Buffer.from(header, 'base64').toString());
      return JSON.stringify([payload.authorization.nonce, payload.signature]);
    });
    assert.deepEqual([authorizations.length, new Set(authorizations).size], [2, 1]);
    assert.deepEqual([book.charges(), book.calls(bought).length], [1, 1]);
    // The crash counts as spent.
    const other = await run({ ...bought, args: [...bought.args, '--key', 'other'] });
    assert.deepEqual([other.code, JSON.parse(other.stdout).error.member], [1, 'budget_usd']);
    assert.match(
      other.stderr,
      /^relay: budget_usd: expected at most \$0\.003 on .* signed before, and \$0\.003 now\n$/,
    );
  });

  test('six processes at once with a budget for two: two payments', async () => {
    const ledger = join(it.world.folder, 'shared.ndjson');
    const book = books();
    const scenes = Array.from({ length: 6 }, (_, i) =>
      scene(`/shared-${i}`, '--key', `shared-${i}`, '--ledger', ledger, '--budget-usd', '0.0089'),
    );
    const results = await Promise.all(scenes.map(run));
    const codes = results.map(({ code }) => code).sort();
    assert.deepEqual(codes, [0, 0, 1, 1, 1, 1], results.map(({ stderr }) => stderr).join(''));
    assert.deepEqual([book.payments().length, book.charges()], [2, 2]);
  });
});
