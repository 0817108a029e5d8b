import assert from 'node:assert/strict';
import { test } from 'node:test';
import { utf8 } from '#src/domain/encoding.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import type { CheckName } from '#src/domain/receipt/report.ts';
import { type JobFacts, type VerifyFacts, verifySignedReceipt } from '#src/domain/receipt/verify.ts';
import { attemptRetried, commitment, T0 } from '#test/support/given/given-events.ts';
import {
  goodFacts,
  JOB_EVENTS,
  jobFactsOf,
  payloadOf,
  recorded,
  signed,
  type UnloggedPayload,
} from '#test/support/given/given-receipt.ts';
import { primitives, testKey } from '#test/support/given/primitives.ts';
import { ALL_CHECKS, RECEIPT_CHECKS } from '#test/support/world/service-receipts.ts';

const key = testKey();
const iat = T0 / 1000;

async function verdict(facts: VerifyFacts) {
  const report = await verifySignedReceipt(facts, primitives);
  const names = report.checks.map(({ name }) => name);
  assert.deepEqual(
    names,
    facts.job === null ? RECEIPT_CHECKS : ALL_CHECKS,
    'every check is returned, also after a failure',
  );
  assert.equal(
    report.ok,
    report.checks.every(({ ok }) => ok),
  );
  assert.equal(report.signatureVerified, report.checks.find(({ name }) => name === 'signature_valid')?.ok);
  return { report, failed: report.checks.filter(({ ok }) => !ok).map(({ name }) => name) };
}

test('a true receipt passes every check', async () => {
  const { report, failed } = await verdict(await goodFacts(key));
  assert.deepEqual(failed, []);
  const { ok, receiptId, jobId, keyId, signatureVerified } = report;
  const facts = await goodFacts(key);
  assert.deepEqual(
    { ok, receiptId, jobId, keyId, signatureVerified },
    { ok: true, receiptId: facts.receiptId, jobId: facts.jobId, keyId: key.keyId, signatureVerified: true },
  );
});

test('without the job, and as a bare JWS, the receipt-only checks run', async () => {
  const { report, failed } = await verdict(await goodFacts(key, { job: null, receiptId: null, jobId: null }));
  assert.deepEqual(failed, []);
  assert.equal(report.receiptId, (await payloadOf()).receiptId);
});

type Tampering = (facts: VerifyFacts) => VerifyFacts | Promise<VerifyFacts>;
/** Signs another payload with the relay's key, as a dishonest relay would. */
const payload =
  (change: (payload: UnloggedPayload) => ReceiptPayload): Tampering =>
  async (facts) => ({ ...facts, jws: await signed(change(await payloadOf()), key) });
const job =
  (changes: Partial<JobFacts>): Tampering =>
  (facts) => ({ ...facts, job: { ...jobFactsOf(), ...changes } });
const events = (change: (events: JobFacts['events']) => JobFacts['events']): Tampering =>
  job({ events: change(recorded(JOB_EVENTS)) });
const keyWindow =
  (changes: Partial<typeof key.record>): Tampering =>
  (facts) => ({ ...facts, keys: [{ ...key.record, ...changes }] });
const other = 'job_0000000000000000000000000z';

/** Each tampering and the one check that names it. */
const ALONE: readonly (readonly [string, CheckName, Tampering])[] = [
  [
    'another receipt than the one asked for',
    'receipt_present',
    (facts) => ({ ...facts, receiptId: 'rcpt_other' }),
  ],
  [
    'the signature of another receipt',
    'signature_valid',
    async (facts) => ({ ...facts, jws: await otherSignature(facts.jws) }),
  ],
  ['a key of the same name with other bytes', 'signature_valid', keyWindow({ x: testKey().x })],
  ['a key that is no key', 'signature_valid', keyWindow({ x: 'AAAA' })],
  ['issued before the key was valid', 'key_valid_at_issue', keyWindow({ notBefore: iat + 1 })],
  ['issued after the key retired', 'key_valid_at_issue', keyWindow({ notAfter: iat - 1 })],
  ['issued after the key was compromised', 'key_valid_at_issue', keyWindow({ compromisedAt: iat })],
  ['signed by the key of checkpoints', 'key_valid_at_issue', keyWindow({ purpose: 'checkpoint' })],
  ['another job than the one asked for', 'payload_job_id', (facts) => ({ ...facts, jobId: other })],
  [
    'a commitment of the request left out',
    'request_commitment_present',
    payload((p) => ({
      ...p,
      request: { ...p.request, _sd: p.request._sd.filter((sd) => sd === commitment('U')) },
    })),
  ],
  [
    'a commitment of the request twice',
    'request_commitment_present',
    payload((p) => ({
      ...p,
      request: { ...p.request, _sd: [commitment('U'), ...p.request._sd.slice(0, 3), commitment('U')] },
    })),
  ],
  [
    'a sixth commitment of the request',
    'request_commitment_present',
    payload((p) => ({ ...p, request: { ...p.request, _sd: [...p.request._sd, commitment('Z')] } })),
  ],
  [
    'a response without a commitment',
    'response_commitment_present',
    payload((p) => ({ ...p, outcome: { ...p.outcome, _sd: [] } })),
  ],
  [
    'a commitment to a response that never came',
    'response_commitment_present',
    payload((p) => ({ ...p, outcome: { ...p.outcome, responseBytes: null } })),
  ],
  ["another job's record", 'receipt_links_job', job({ jobId: other })],
  ['a job that names another receipt', 'job_links_receipt', job({ receiptId: 'rcpt_other' })],
  ['a job that names no receipt', 'job_links_receipt', job({ receiptId: null })],
  ['a job of another status', 'status_matches', job({ status: 'failed' })],
  ['another response status', 'status_matches', job({ responseStatus: 201 })],
  [
    'a receipt of another status',
    'status_matches',
    payload((p) => ({ ...p, outcome: { ...p.outcome, status: 'failed' } })),
  ],
  ['another method', 'method_matches', job({ method: 'PUT' })],
  ['another target', 'target_matches', job({ targetCommitment: commitment('V') })],
  ['another count of attempts', 'attempts_match', job({ attempts: 1 })],
  [
    'an attempt left out of the receipt',
    'attempts_match',
    payload((p) => ({ ...p, attempts: p.attempts.slice(1) })),
  ],
  [
    'an attempt that differs',
    'attempts_match',
    payload((p) => ({ ...p, attempts: p.attempts.map((a) => ({ ...a, sent: 'no' as const })) })),
  ],
  [
    'an exemption left out',
    'attempts_match',
    payload((p) => ({ ...p, attempts: p.attempts.map(({ exempted: _, ...a }) => a) })),
  ],
  ['another decision', 'decision_matches', job({ decisionId: 'dec_other' })],
  ['no decision where there was one', 'decision_matches', job({ decisionId: null })],
  ['no payment where there was one', 'payment_matches', job({ payment: null })],
  [
    'an unpaid execution that looks paid',
    'payment_matches',
    payload((p) => ({ ...p, payment: p.payment && { ...p.payment, amount: '3' } })),
  ],
  [
    'an event edited',
    'event_chain_matches',
    events((all) => all.map((e, i) => (i === 0 ? { ...e, data: { ...e.data, owner: 'x' } } : e))),
  ],
  [
    "an event's id edited",
    'event_chain_matches',
    events((all) => all.map((e, i) => (i === 3 ? { ...e, id: 'x' } : e))),
  ],
  [
    "an event's type edited",
    'event_chain_matches',
    events((all) => all.map((e, i) => (i === 0 ? { ...e, type: 'JobBegun' } : e))),
  ],
  ['the first event dropped', 'event_chain_matches', events((all) => all.slice(1))],
  ['the tail cut', 'event_chain_matches', events((all) => all.slice(0, -1))],
  ['an event too many', 'event_chain_matches', events((all) => [...all, ...all.slice(-1)])],
  [
    'revisions shifted',
    'event_chain_matches',
    events((all) => all.map((e) => ({ ...e, revision: e.revision + 1n }))),
  ],
  ['another stream', 'event_chain_matches', events((all) => all.map((e) => ({ ...e, stream: 'job-x' })))],
  [
    'no event at all',
    'event_chain_matches',
    payload((p) => ({ ...p, stream: { ...p.stream, revision: '9' } })),
  ],
];

for (const [why, check, tamper] of ALONE) {
  test(`${check} alone fails: ${why}`, async () => {
    const { failed } = await verdict(await tamper(await goodFacts(key)));
    assert.deepEqual(failed, [check]);
  });
}

async function otherSignature(jws: string): Promise<string> {
  const another = await signed({ ...(await payloadOf()), iat: iat + 1 }, key);
  return jws.slice(0, jws.lastIndexOf('.')) + another.slice(another.lastIndexOf('.'));
}

test('events swapped, or an attempt edited, fail the chain and the attempts', async () => {
  const swapped = events((all) => [0, 2, 1, 3].flatMap((i) => all[i] ?? []));
  const edited = events((all) =>
    all.map((e, i) => (i === 1 ? { ...e, data: { ...e.data, status: 502 } } : e)),
  );
  for (const tamper of [swapped, edited]) {
    const { failed } = await verdict(await tamper(await goodFacts(key)));
    assert.deepEqual(failed, ['attempts_match', 'event_chain_matches']);
  }
});

test('every field of the payload is under the signature: any change of one breaks it', async () => {
  const facts = await goodFacts(key);
  const [head = '', body = '', tail = ''] = facts.jws.split('.');
  const text = Buffer.from(body, 'base64url').toString();
  const values = [...text.matchAll(/"[^"]+":("[^"]*"|\d+|true|false|null)/g)];
  assert.ok(values.length > 40);
  for (const match of values) {
    const at = match.index + match[0].length - (match[1]?.length ?? 0);
    const changed = `${text.slice(0, at)}${match[1] === '"x"' ? '"y"' : '"x"'}${text.slice(at + (match[1]?.length ?? 0))}`;
    const jws = `${head}.${Buffer.from(changed).toString('base64url')}.${tail}`;
    const { report } = await verdict({ ...facts, jws });
    assert.equal(report.signatureVerified, false, match[0]);
  }
});

test('a receipt of a job without payment, decision, response: null is a value too', async () => {
  const { interrupted, facts } = await interruptedReceipt();
  const { failed } = await verdict(facts);
  assert.deepEqual(failed, []);
  assert.deepEqual(interrupted.outcome._sd, []);
});

async function interruptedReceipt() {
  const [start] = JOB_EVENTS;
  assert.ok(start?.type === 'JobStarted');
  const last = { willRetry: false, waitMs: null, leafCommitment: null, addressCommitment: null };
  const done = JOB_EVENTS.at(-1);
  assert.ok(done?.type === 'JobCompleted');
  const lie = {
    responseBytes: null,
    responseCommitment: null,
    decisionId: null,
    attempts: 1,
    status: 'failed' as const,
  };
  const history = [
    { ...start, data: { ...start.data, payment: null, decisionId: null, decisionHash: null } },
    attemptRetried(last),
    { ...done, data: { ...done.data, ...lie } },
  ];
  const interrupted = await payloadOf(history);
  const jws = await signed(interrupted, key);
  return { interrupted, facts: await goodFacts(key, { jws, job: jobFactsOf(history) }) };
}

test('events without a canonical JSON form fail the chain, and the other checks are still returned', async () => {
  for (const owner of ['\ud800', Number.POSITIVE_INFINITY]) {
    const tamper = events((all) => all.map((e, i) => (i === 0 ? { ...e, data: { ...e.data, owner } } : e)));
    const { failed } = await verdict(await tamper(await goodFacts(key)));
    assert.deepEqual(failed, ['event_chain_matches']);
  }
});

test('a text that is no receipt: every check but job_present fails; null equals nothing', async () => {
  const { facts } = await interruptedReceipt();
  for (const jws of ['', 'x', 'a.b.c']) {
    const known = await verdict({ ...facts, jws });
    assert.deepEqual(
      known.failed,
      ALL_CHECKS.filter((name) => name !== 'job_present'),
    );
    const bare = await verdict({ ...facts, jws, receiptId: null, jobId: null, job: null });
    assert.deepEqual(bare.failed, RECEIPT_CHECKS);
    assert.deepEqual([bare.report.receiptId, bare.report.jobId, bare.report.keyId], [null, null, null]);
  }
});

test('a job without an idempotency key has four commitments of its request', async () => {
  const four = payload((p) => ({
    ...p,
    request: { ...p.request, _sd: p.request._sd.filter((sd) => sd !== commitment('K')) },
  }));
  assert.deepEqual((await verdict(await four(await goodFacts(key)))).failed, []);
});

test('sizes are checked before the primitive is called', async () => {
  const facts = await goodFacts(key);
  const lenient = { ...primitives, ed25519Verify: () => true };
  const cut = (bytes: number) =>
    `${facts.jws.slice(0, facts.jws.lastIndexOf('.'))}.${Buffer.alloc(bytes).toString('base64url')}`;
  const valid = async (changes: Partial<VerifyFacts>) =>
    (await verifySignedReceipt({ ...facts, ...changes }, lenient)).signatureVerified;
  assert.equal(await valid({ jws: cut(64) }), true);
  for (const bytes of [0, 63, 65]) assert.equal(await valid({ jws: cut(bytes) }), false);
  for (const bytes of [0, 31, 33]) {
    const x = Buffer.alloc(bytes).toString('base64url');
    assert.equal(await valid({ keys: [{ ...key.record, x }] }), false);
  }
});

test('both lists are shown if attempts differ in content only', async () => {
  const payload = await payloadOf();
  const attempts = payload.attempts.map((attempt) => ({ ...attempt, sent: 'no' as const }));
  const facts = await goodFacts(key, { jws: await signed({ ...payload, attempts }, key) });
  const { report } = await verdict(facts);
  const check = report.checks.find(({ name }) => name === 'attempts_match');
  assert.deepEqual(check?.details, { expected: payload.attempts, receipt: attempts });
});

test('a payload with a repeated name or with blanks has no version: parsers could differ', async () => {
  const good = await payloadOf();
  const text = JSON.stringify(good);
  const twice = text.replace('"mode":', '"mode":"demo","mode":');
  assert.deepEqual(JSON.parse(twice), good);
  for (const spelling of [twice, text.replace(':', ': '), text.replace('"mode"', '"m\\u006fde"')]) {
    const part = (json: string) => Buffer.from(json).toString('base64url');
    const header = JSON.stringify({ alg: 'EdDSA', kid: key.keyId, typ: 'relay-receipt+jws' });
    const input = `${part(header)}.${part(spelling)}`;
    const jws = `${input}.${Buffer.from(await key.sign(utf8(input))).toString('base64url')}`;
    const { ok, signatureVerified, checks } = await verifySignedReceipt(
      await goodFacts(key, { jws }),
      primitives,
    );
    const supported = checks.find(({ name }) => name === 'payload_version_supported');
    assert.deepEqual([ok, signatureVerified, supported?.ok], [false, true, false]);
  }
});
