// The members and formats that the guide for verifiers names are those of the schemas.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PaymentFacts, ScheduledRun } from '#src/domain/event-fields.ts';
import { ReceiptLog, ReceiptPayload } from '#src/domain/receipt/payload.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import { verifierKeyText } from '#src/domain/transparency/note.ts';
import { ExecutionResponse } from '#src/http/response/execution-response.ts';
import { ReceiptResponse } from '#src/http/routes/jobs.ts';
import { VerificationResponse } from '#src/http/routes/verify.ts';
import { signedCheckpoint } from '#src/usecases/transparency/checkpoints.ts';
import { needsNode } from '#test/support/chain/requirements.ts';
import { testKey } from '#test/support/given/primitives.ts';
import { rootPath } from '#test/support/process/runtime.ts';

const guide = readFileSync(`${rootPath}/src/verify/README.md`, 'utf8');

/** The text of an item of "Formats". */
function item(name: string): string {
  const line = guide.split('\n').find((one) => one.startsWith(`- **${name}`));
  return line ?? assert.fail(`the guide has no ${name}`);
}

/** Each list of members in braces, in order. */
const listsIn = (text: string): readonly (readonly string[])[] =>
  [...text.matchAll(/`\{([^}`]+)\}`/g)].map(([, list = '']) => list.split(', '));

const membersOf = ({ properties }: { readonly properties: object }) => Object.keys(properties);
const latest = ReceiptPayload.anyOf[1];

test('the execution response has its JWS in `receipt`', () => {
  const { receipt, ...others } = ExecutionResponse.properties;
  assert.deepEqual(listsIn(item('Execution response')), [membersOf(receipt)]);
  for (const name of ['disclosures', 'checkpoint']) assert.ok(name in others, name);
});

test('the answers for receipts and verifications have the members that the guide lists', () => {
  assert.deepEqual(listsIn(item('Receipt')), [membersOf(ReceiptResponse)]);
  const { checks } = VerificationResponse.properties;
  assert.deepEqual(listsIn(item('Verification')), [membersOf(VerificationResponse), membersOf(checks.items)]);
});

test('the payload has the members that the guide lists, in each version', () => {
  const { attempts, request, outcome } = latest.properties;
  const [first, , third, ofRun] = ReceiptPayload.anyOf;
  const inPayload = [latest, ScheduledRun, PaymentFacts, request, attempts.items, outcome, ReceiptLog].map(
    membersOf,
  );
  assert.deepEqual(listsIn(item('JWS')), [['alg', 'kid', 'typ'], ...inPayload]);
  assert.deepEqual([...membersOf(latest), 'schedule'].sort(), membersOf(ofRun).sort());
  assert.deepEqual(listsIn(item('Hash chain'))[0], membersOf(latest.properties.stream));
  assert.deepEqual(
    membersOf(first),
    membersOf(latest).filter((name) => name !== 'log'),
  );
  assert.deepEqual(membersOf(third), membersOf(latest));
  assert.deepEqual(membersOf(third.properties.outcome), membersOf(outcome));
});

test('the name of the checkpoint key is the origin of the log, in the key and in each checkpoint', async () => {
  assert.match(item('Checkpoint key'), /`<name>\+<id>\+<key>`/);
  const key = testKey({ purpose: 'checkpoint' });
  const origin = 'relay.example/receipts';
  const publicKey = Buffer.from(key.x, 'base64url');
  const [name, id, encoded = ''] = verifierKeyText({ name: origin, publicKey }).split(
    /\+(?=[0-9a-f]{8}\+)|(?<=\+[0-9a-f]{8})\+/,
  );
  assert.equal(name, origin);
  assert.deepEqual(Buffer.from(encoded, 'base64'), Buffer.concat([Buffer.from([1]), publicKey]));
  const { data } = await signedCheckpoint({ origin, size: 0, root: new Uint8Array(32) }, key, 0);
  assert.equal(parseCheckpoint(data.note)?.origin, origin);
  const [line, signature = ''] = /— \S+ (\S+)\n$/.exec(data.note) ?? assert.fail(data.note);
  assert.ok(line.startsWith(`— ${origin} `));
  assert.equal(Buffer.from(signature, 'base64').subarray(0, 4).toString('hex'), id);
});

test('the line for other verifiers prints each key as whpk_ and as PEM', needsNode(18), () => {
  const [, program = ''] = /\| node -e '([^']+)'/.exec(guide) ?? [];
  const { x } = testKey();
  const jwk = { kty: 'OKP', crv: 'Ed25519', kid: 'k', purpose: 'receipt', x };
  const input = JSON.stringify({ keys: [jwk] });
  const { stdout, stderr } = spawnSync('node', ['-e', program], { input, encoding: 'utf8' });
  assert.equal(stderr, '');
  const [first = '', ...pem] = stdout.trim().split('\n');
  assert.equal(first, `k receipt whpk_${Buffer.from(x, 'base64url').toString('base64')}`);
  assert.equal(createPublicKey(pem.join('\n')).export({ format: 'jwk' }).x, x);
});
