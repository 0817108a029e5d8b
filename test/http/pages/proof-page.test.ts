import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault, refused } from '#src/domain/refusal.ts';
import { hex } from '#test/support/given/given-events.ts';
import { clientOf, errorOf } from '#test/support/process/http-client.ts';
import { fakeWorld, JOB, job, RECEIPT, report, running } from '#test/support/world/http-deps.ts';
import { noTransparency } from '#test/support/world/no-transparency.ts';

const asked = async (world: ReturnType<typeof fakeWorld>, path: string) => {
  const { status, headers, body } = await clientOf(world).get(path);
  return { status, headers, text: String(body) };
};

test('the page states the status of a job or a receipt, every check by name, before any script runs', async () => {
  for (const id of [JOB, RECEIPT]) {
    const { status, headers, text } = await asked(fakeWorld(), `/proof/${id}`);
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self';/);
    for (const part of [
      JOB,
      RECEIPT,
      'succeeded',
      'receipt_present',
      'signature_valid',
      'Signature</dt><dd>verified',
    ]) {
      assert.ok(text.includes(part), part);
    }
    assert.doesNotMatch(text, /<script>|javascript:| on\w+=/i);
  }
});

test('the page of a receipt runs the verifier, with the addresses of receipt, keys, proof and checkpoint', async () => {
  const { headers, text } = await asked(fakeWorld(), `/proof/${JOB}`);
  const data = Object.fromEntries(
    [...(/<section [^>]*>/.exec(text)?.[0] ?? '').matchAll(/ data-([a-z-]+)="([^"]*)"/g)].map(
      ([, name, value]) => [name, value],
    ),
  );
  assert.deepEqual(data, {
    'receipt-id': RECEIPT,
    receipt: `/api/receipts/${RECEIPT}`,
    keys: '/.well-known/jwks.json',
    proof: `/log/proof/${RECEIPT}`,
    checkpoint: '/log/checkpoint',
  });
  assert.match(text, /<script type="module" src="\/verify\.js\?/);
  assert.match(
    headers.get('content-security-policy') ?? '',
    / script-src 'sha256-[^ ;]+' https:\/\/relay\.example\/verify\.js;/,
  );
  for (const word of [
    'false outcome, truly signed',
    'unwitnessed',
    'backdating',
    'relay verify receipt.json',
  ])
    assert.ok(text.includes(word), word);
  const live = await asked(fakeWorld({ reads: { job: { find: async () => running() } } }), `/proof/${JOB}`);
  assert.doesNotMatch(live.text, /<script|own-check/);
});

test('where a transparency log is kept, its proof and checkpoint are linked and demanded on the command line; else not', async () => {
  const proof = `https://relay.example/log/proof/${RECEIPT}`;
  const hrefs = (text: string) =>
    [...text.matchAll(/<a href="([^"]*\/log\/[^"]*)"/g)].map(([, href]) => href);
  const commands = (text: string) =>
    /<pre class="wrap" data-copy><code>(.*?)<\/code>/s.exec(text)?.[1]?.split('\n');
  const keys = 'curl -sf https://relay.example/.well-known/jwks.json &gt; jwks.json';
  const kept = { transparency: { ...noTransparency, latest: () => 'a checkpoint' } };
  const logged = await asked(fakeWorld(kept), `/proof/${JOB}`);
  assert.deepEqual(hrefs(logged.text), [
    `/log/proof/${RECEIPT}`,
    '/log/checkpoint',
    proof,
    'https://relay.example/log/checkpoint',
  ]);
  assert.deepEqual(commands(logged.text), [
    keys,
    `curl -sf ${proof} &gt; receipt.tlog-proof`,
    'relay verify receipt.json --keys jwks.json --proof receipt.tlog-proof',
  ]);
  const without = await asked(fakeWorld(), `/proof/${JOB}`);
  assert.deepEqual(hrefs(without.text), []);
  assert.deepEqual(commands(without.text), [keys, 'relay verify receipt.json --keys jwks.json']);
  const live = await asked(
    fakeWorld({ ...kept, reads: { job: { find: async () => running() } } }),
    `/proof/${JOB}`,
  );
  assert.deepEqual(hrefs(live.text), ['https://relay.example/log/checkpoint']);
});

test('a receipt that need not be in the log yet is pending, and nothing is wrong with it', async () => {
  const waits = { name: 'receipt_logged', ok: true, details: { pending: true, dueBy: 1 } } as const;
  const { text } = await asked(
    fakeWorld({ verifyJob: async () => report({ checks: [waits] }) }),
    `/proof/${JOB}`,
  );
  assert.match(text, /<span class="pill pending">pending<\/span>/);
  assert.match(text, /says that every check of the receipt holds/);
});

test('it says in words what the state means, and what a check that fails compared', async () => {
  const mismatch = {
    name: 'status_matches',
    ok: false,
    details: { expected: 'failed', receipt: 'succeeded' },
  } as const;
  const cases = [
    [fakeWorld(), /<p class="lead">This relay says that every check of the receipt holds\.</],
    [
      fakeWorld({ reads: { job: { find: async () => job({ status: 'failed', responseOk: false }) } } }),
      /that the call failed is what it proves/,
    ],
    [
      fakeWorld({ verifyJob: async () => report({ ok: false, checks: [mismatch] }) }),
      /do not rely on this receipt/,
    ],
    [
      fakeWorld({ verifyJob: async () => report({ ok: false, checks: [mismatch] }) }),
      /pill failed">failed<.*status_matches.*>expected: failed; receipt: succeeded<.*0 of 1 checks hold/s,
    ],
  ] as const;
  for (const [world, words] of cases) assert.match((await asked(world, `/proof/${JOB}`)).text, words);
});

test('outcome, time and payment come first; the checks are counted, and folded unless one fails', async () => {
  const payment = {
    scheme: 'exact',
    network: 'eip155:8453',
    asset: '0x1',
    amount: '3000',
    payTo: '0x2',
    payer: '0x3',
    transaction: null,
    payloadHash: hex('a'),
  };
  const check = {
    name: 'payment_matches',
    ok: true,
    details: { expected: payment, receipt: payment },
  } as const;
  const paid = report({ checks: [...report().checks, check] });
  const { text } = await asked(fakeWorld({ verifyJob: async () => paid }), `/proof/${JOB}`);
  assert.match(
    text,
    /<\/p>\s*<dl class="facts"><dt>Outcome<\/dt><dd>succeeded, the target answered 200<\/dd><dt>Completed<\/dt><dd>[^<]+Z<\/dd><dt>Paid<\/dt><dd>3000 units on Base<\/dd><\/dl>/,
  );
  assert.match(text, /<details id="own-rows"><summary id="own-count">3 of 3 checks hold<\/summary>\s*<table/);
  const free = { ...check, details: { expected: null, receipt: null } };
  const unpaid = report({ ok: false, checks: [free, { name: 'signature_valid', ok: false }] });
  const failing = await asked(fakeWorld({ verifyJob: async () => unpaid }), `/proof/${JOB}`);
  assert.match(failing.text, /<dt>Paid<\/dt><dd>nothing: payment is off<\/dd>/);
  assert.match(failing.text, /<details id="own-rows" open><summary id="own-count">1 of 2 checks hold</);
});

test('the content of records and reports is shown as text', async () => {
  const evil = `<img src=x onerror="alert('1')">&`;
  const world = fakeWorld({
    reads: { job: { find: async () => job({ createdAt: evil, method: evil as 'POST' }) } },
    verifyJob: async () => report({ keyId: evil, checks: [{ name: evil as 'signature_valid', ok: false }] }),
  });
  const { text } = await asked(world, `/proof/${JOB}`);
  assert.ok(!text.includes('<img'));
  assert.equal(text.split('&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;').length - 1, 5);
});

test('an unknown id is a page of its own with 404', async () => {
  const none = { find: async () => null };
  const world = fakeWorld({
    reads: { job: none },
    verifyReceipt: async () => refused('receipt_not_found', 'no such receipt'),
  });
  for (const id of [JOB, RECEIPT, 'nonsense', '%E0%A4%A', '<b>', 'x'.repeat(10_000)]) {
    const { status, headers, text } = await asked(world, `/proof/${encodeURI(id)}`);
    assert.equal(status, 404);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(text, /No proof here/);
    assert.doesNotMatch(text, /<b>/);
  }
});

test('records that are unavailable are a page with 503 for a browser, and an error body for a program', async () => {
  const unavailable = () =>
    Promise.reject(new Fault('read_models_unavailable', 'not available', { retryAfterSeconds: 7 }));
  const client = clientOf(fakeWorld({ reads: { job: { find: unavailable } } }));
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const page = await client.call(`/proof/${JOB}`, { headers: { accept } });
  assert.equal(page.status, 503);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.deepEqual([page.headers.get('retry-after'), page.headers.get('cache-control')], ['7', 'no-store']);
  const text = await page.text();
  assert.match(text, /<h1>The records are unavailable<\/h1>/);
  assert.doesNotMatch(text, /not available|undefined/);
  const body = await client.call(`/proof/${JOB}`, { headers: { accept: 'application/json' } });
  assert.deepEqual([body.status, (await errorOf(body)).code], [503, 'read_models_unavailable']);
});

test('a running job has a page and no report yet; a receipt outlives its job', async () => {
  const live = await asked(fakeWorld({ reads: { job: { find: async () => running() } } }), `/proof/${JOB}`);
  assert.match(live.text, /there is no receipt yet/);
  const alone = await asked(fakeWorld({ reads: { job: { find: async () => null } } }), `/proof/${RECEIPT}`);
  assert.equal(alone.status, 200);
  assert.match(alone.text, /The job is no longer retained/);
});

test('the badge says the state, and that a failed call has a receipt that verifies, always with 200', async () => {
  const failed = job({ status: 'failed', responseOk: false });
  const cases = [
    [fakeWorld(), JOB, 'verified'],
    [fakeWorld(), RECEIPT, 'verified'],
    [fakeWorld({ reads: { job: { find: async () => running() } } }), JOB, 'running'],
    [fakeWorld({ reads: { job: { find: async () => failed } } }), JOB, 'verified: call failed'],
    [fakeWorld({ verifyJob: async () => report({ ok: false }) }), JOB, 'failed'],
    [fakeWorld(), 'nonsense', 'unknown'],
    [fakeWorld({ reads: { job: { find: async () => null } } }), JOB, 'unknown'],
    [fakeWorld({ reads: { job: { find: () => Promise.reject(new Error('away')) } } }), JOB, 'unknown'],
  ] as const;
  for (const [world, id, word] of cases) {
    const { status, headers, text } = await asked(world, `/proof/${id}/badge.svg`);
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'image/svg+xml');
    assert.ok(text.includes(`>${word}</text>`), `${id} ${word}`);
  }
});
