// Disclosures: a commitment is opened by its own text only, and only where its name belongs.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toBase64url, utf8 } from '#src/domain/encoding.ts';
import { type CommitmentName, disclose, openDisclosures } from '#src/domain/receipt/disclosures.ts';
import type { ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { payloadOf } from '#test/support/given/given-receipt.ts';

const salt = new Uint8Array(16).fill(7);
const made = (name: CommitmentName, value: string | readonly string[]) => disclose(salt, name, value);
const url = await made('target_url', 'https://target.example/hook');
const names = await made('header_names', ['authorization', 'x-a']);
const body = await made('response_body_sha256', 'ab'.repeat(32));
const address = await made('attempt_1_address', '192.0.2.1');
const base = await payloadOf();

/** The receipt that commits to all four. */
const payload: ReceiptPayload = {
  ...base,
  request: { ...base.request, _sd: [url.commitment, names.commitment] },
  attempts: base.attempts.map((attempt) => ({
    ...attempt,
    _sd: attempt.n === 1 ? [address.commitment] : [],
  })),
  outcome: { ...base.outcome, _sd: [body.commitment] },
};

const open = (...texts: readonly string[]) => openDisclosures(payload, texts);
const text = (value: unknown) => toBase64url(utf8(JSON.stringify(value)));

describe('opened', () => {
  test('each commitment of request, response and attempt, to its name and value', async () => {
    assert.deepEqual(await open(url.text, names.text, body.text, address.text), [
      { ok: true, name: 'target_url', value: 'https://target.example/hook' },
      { ok: true, name: 'header_names', value: ['authorization', 'x-a'] },
      { ok: true, name: 'response_body_sha256', value: 'ab'.repeat(32) },
      { ok: true, name: 'attempt_1_address', value: '192.0.2.1' },
    ]);
  });
  test('none, where none is given', async () => {
    assert.deepEqual(await open(), []);
  });
});

describe('refused', () => {
  const saltText = toBase64url(salt);
  const problems: Readonly<Record<string, readonly [text: string, name: string | null, problem: string]>> = {
    'another value under the same salt': [
      text([saltText, 'target_url', 'https://target.example/other']),
      'target_url',
      'not_committed',
    ],
    'another name for a committed value': [
      text([saltText, 'target_origin', 'https://target.example/hook']),
      'target_origin',
      'not_committed',
    ],
    'another salt': [
      text([toBase64url(new Uint8Array(16)), 'target_url', 'https://target.example/hook']),
      'target_url',
      'not_committed',
    ],
    'another form of the same JSON': [
      toBase64url(utf8(` ${JSON.stringify([saltText, 'target_url', 'https://target.example/hook'])}`)),
      'target_url',
      'not_committed',
    ],
    'text that is no base64url': [`${url.text}=`, null, 'malformed'],
    'text that is no JSON': [toBase64url(utf8('hello')), null, 'malformed'],
    'JSON of another shape': [text({ name: 'target_url' }), null, 'malformed'],
    'a salt of another length': [text(['c2FsdA', 'target_url', 'x']), null, 'malformed'],
    'a value that is a number': [text([saltText, 'target_url', 1]), null, 'malformed'],
    'nothing at all': ['', null, 'malformed'],
  };
  for (const [title, [given, name, problem]] of Object.entries(problems)) {
    test(title, async () => assert.deepEqual(await open(given), [{ ok: false, name, problem }]));
  }
  test('a valid one whose name belongs to another part', async () => {
    const misplaced = {
      ...payload,
      request: { ...payload.request, _sd: [] },
      outcome: { ...payload.outcome, _sd: [url.commitment] },
    };
    assert.deepEqual(openDisclosures(misplaced, [url.text]), [
      { ok: false, name: 'target_url', problem: 'misplaced' },
    ]);
  });
  test('one of an attempt that was not made', async () => {
    const ninth = await made('attempt_9_address', '192.0.2.1');
    assert.deepEqual(await open(ninth.text), [
      { ok: false, name: 'attempt_9_address', problem: 'not_committed' },
    ]);
  });
  test('another value of a name that was opened before, though the receipt commits to both', async () => {
    const evil = await made('target_url', 'https://evil.example/hook');
    const _sd = [url.commitment, names.commitment, evil.commitment];
    const twofold = { ...payload, request: { ...payload.request, _sd } };
    assert.deepEqual(openDisclosures(twofold, [url.text, evil.text]), [
      { ok: true, name: 'target_url', value: 'https://target.example/hook' },
      { ok: false, name: 'target_url', problem: 'repeated' },
    ]);
  });
  test('the same text a second time', async () => {
    assert.deepEqual((await open(url.text, url.text))[1], {
      ok: false,
      name: 'target_url',
      problem: 'repeated',
    });
  });
});
