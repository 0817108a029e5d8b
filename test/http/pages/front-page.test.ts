import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pricing } from '#src/discovery/documents/pricing.ts';
import { documentFacts } from '#src/http/routes/documents.ts';
import { type Client, clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld, type HttpWorld, JOB, proofRecord, RECEIPT } from '#test/support/world/http-deps.ts';

const shown = (world: HttpWorld = fakeWorld()) => shownBy(clientOf(world));

const shownBy = async (client: Client) => {
  const { status, headers, body } = await client.get('/');
  return { status, headers, text: String(body) };
};

const withProofs = (recent: HttpWorld['reads']['proof']['recent']) =>
  fakeWorld({ reads: { proof: { recent, recentFailures: async () => [] } } });

test('the front page is small, kept only shortly and has no inline script', async () => {
  const { status, headers, text } = await shown();
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(headers.get('cache-control'), 'public, max-age=5');
  assert.ok(Buffer.byteLength(text) < 25_000, `${Buffer.byteLength(text)} bytes`);
  assert.doesNotMatch(text, /<script(?! type="module" src="\/verify\.js\?)|javascript:| on\w+=/i);
});

test('it lists the newest proofs as the read models contain them, each linked to its page', async () => {
  let proofs = [proofRecord()];
  const recent = async () => proofs;
  const client = clientOf(
    fakeWorld({
      reads: { proof: { recent, recentFailures: async () => [] } },
      progress: { position: () => String(proofs.length) },
    }),
  );
  const { text } = await shownBy(client);
  for (const part of [
    `href="/proof/${JOB}"`,
    'pill failed',
    '3 attempts, timeout, receipt verified',
    '<time',
  ]) {
    assert.ok(text.includes(part), part);
  }
  proofs = [];
  const later = await shownBy(client);
  assert.match(later.text, /No call has been made yet/);
  assert.ok(!later.text.includes(JOB));
});

test('it begins with the newest receipt that verifies, of a call that succeeded, and with the call that makes one', async () => {
  const unverified = proofRecord({ receiptVerified: false, receiptId: 'rcpt_unverified' });
  const failed = proofRecord({ receiptId: 'rcpt_failed' });
  const succeeded = proofRecord({ status: 'succeeded' });
  const cases = [
    [[unverified, failed, succeeded], `<a href="/proof/${RECEIPT}">`],
    [[unverified, failed], 'There is none to show yet'],
    [[], 'There is none to show yet'],
  ] as const;
  for (const [proofs, words] of cases) {
    const { text } = await shown(withProofs(async () => proofs));
    const [first = ''] = text.split('<h2>How a call goes');
    for (const part of [words, 'curl', '/api/execute/webhook']) assert.ok(first.includes(part), part);
  }
});

test('the next step works: on a service that charges the call is answered with 402, and programs that pay are linked', async () => {
  const [first = ''] = (await shown(fakeWorld({ settings: { mode: 'x402' } }))).text.split(
    '<h2>How a call goes',
  );
  assert.match(first, /answered with <code>402<\/code>.*<a href="\/api\/snippets">/s);
  assert.doesNotMatch(first, /This call makes one/);
});

test('it says in words how each call ended', async () => {
  const cases = [
    [
      { attempts: 1, responseStatus: 204, errorCategory: null, status: 'succeeded' },
      '1 attempt, answered 204',
    ],
    [
      { attempts: 0, errorCategory: null, status: 'running', receiptVerified: false },
      'POST, 0 attempts</span>',
    ],
    [{ errorCategory: 'interrupted_unknown' }, '3 attempts, interrupted unknown'],
  ] as const;
  for (const [changes, words] of cases) {
    const { text } = await shown(withProofs(async () => [proofRecord(changes)]));
    assert.ok(text.includes(words), words);
  }
});

test('with the read models away it stands all the same and says that the list is unavailable', async () => {
  const world = withProofs(() => Promise.reject(new Error('away')));
  const { status, text } = await shown(world);
  assert.equal(status, 200);
  assert.match(text, /The list is unavailable at the moment/);
  assert.match(text, /What it costs/);
  assert.doesNotMatch(text, /No call has been made/);
});

test('the content of records is shown as text', async () => {
  const evil = `"><img src=x onerror="alert('1')">`;
  const { text } = await shown(
    withProofs(async () => [
      proofRecord({ status: 'succeeded', jobId: evil, createdAt: evil, method: evil as 'POST' }),
    ]),
  );
  assert.ok(!text.includes('<img'));
  // Twice the id, twice the time, and the method in the list and beside the newest receipt.
  assert.equal(text.split('&quot;&gt;&lt;img src=x onerror=').length - 1, 6);
});

test('demo mode states that no one is charged; if payment is enforced, the price is at the top', async () => {
  const offer = { scheme: 'exact', network: 'eip155:84532', price: '$0.007' };
  const demo = (await shown(fakeWorld({ settings: { mode: 'demo', offer } }))).text;
  const paid = (await shown(fakeWorld({ settings: { mode: 'x402', offer } }))).text;
  assert.match(demo, /runs in demo mode and charges no one/);
  assert.doesNotMatch(demo, /signs a payment/);
  assert.doesNotMatch(paid, /runs in demo mode|no payment is asked for/);
  assert.match(paid, /a call costs \$0\.007\./);
  assert.match(paid, /<strong>\$0\.007 a call<\/strong>, by x402 \(scheme exact\) on Base Sepolia/);
});

test('the statuses it calls charged and never charged are those of the pricing', async () => {
  const { text } = await shown();
  const [, once = '', never = ''] = text.split(/Charged once|Never charged/);
  const codes = (part: string) => [...part.matchAll(/<code>(\d..)<\/code>/g)].map(([, code = '']) => code);
  const refusals = codes(never.split('</li>')[0] ?? '').map((code) => code.replace('xx', ''));
  const { charges } = pricing.build(documentFacts(fakeWorld()));
  // 503 depends on the error's code: a note of its own.
  const of = (kind: string) =>
    charges
      .flatMap(({ statuses, charged }) => (charged === kind ? statuses : []))
      .filter((one) => one !== 503);
  assert.deepEqual(codes(once), [...new Set(of('once'))].map(String));
  assert.ok(of('never').filter((status) => status >= 400).length > 5);
  for (const status of of('never')) {
    const isTold = status < 400 || status === 502 || refusals.some((code) => String(status).startsWith(code));
    assert.ok(isTold, String(status));
  }
  for (const status of of('at_most_once')) {
    assert.ok(!refusals.some((code) => String(status).startsWith(code)), String(status));
  }
});
