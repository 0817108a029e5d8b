// Odd networks and the running process: half-broken DNS, a dead first address, DNS without an answer, a failed handshake.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { DecisionRecorded } from '#src/domain/events/decision.ts';
import type { Service } from '#test/support/service.ts';
import { type Executed, execute, get, makeWorld, post, type World } from '#test/support/service-world.ts';
import { makeSelfSigned } from '#test/support/test-ca.ts';
import { startTlsTarget, type TlsTarget } from '#test/support/tls-target.ts';

type Job = { readonly attemptLog: readonly { readonly reason: string | null }[] };
type Decision = Pick<DecisionRecorded, 'recommendation' | 'warnings'>;

let world: World;
let service: Service;
let selfSigned: TlsTarget;
const url = (target: TlsTarget, name: string) => target.url('/hook', `${name}.target.test`);

before(async () => {
  world = await makeWorld({});
  service = await world.start();
  selfSigned = await startTlsTarget({ identity: makeSelfSigned({ names: ['*.target.test'] }) });
});
after(async () => {
  await selfSigned.close();
  await world.end();
});

const outcome = ({ status, body: { job } }: { readonly status: number; readonly body: Executed }) => [
  status,
  job.errorCategory,
  job.reason,
];

test('a name with a dead first address is called at the second one, once', async () => {
  world.dns.set('dead.target.test', ['127.0.0.9', '127.0.0.1']);
  const answer = await execute(service, { url: url(world.target, 'dead') });
  assert.deepEqual(outcome(answer), [200, null, null]);
  assert.equal(world.target.requests.length, 1);
});

test('a self-signed certificate: the answer and the job say so, and the receipt verifies', async () => {
  world.dns.set('self.target.test', ['127.0.0.1']);
  const answer = await execute(service, { url: url(selfSigned, 'self') });
  assert.deepEqual(outcome(answer), [502, 'tls_error', 'self_signed']);
  const job = await get<Job>(`${service.url}/api/jobs/${answer.body.job.id}`);
  assert.deepEqual(
    job.body.attemptLog.map(({ reason }) => reason),
    ['self_signed'],
  );
  const verified = await get<{ readonly ok: boolean }>(answer.body.links.verifyReceipt ?? '');
  assert.deepEqual([verified.body.ok, selfSigned.requests.length], [true, 0]);
});

test('AAAA is never answered: the A address is called', async () => {
  world.dns.set('half.target.test', ['127.0.0.1']);
  world.dns.breakType('AAAA', 'silent');
  assert.deepEqual(outcome(await execute(service, { url: url(world.target, 'half') })), [200, null, null]);
});

test('DNS gives no answer: a refusal that is retryable, and a decision that is no verdict', async () => {
  world.dns.breakType('A', 'silent');
  const action = { url: url(world.target, 'silent'), idempotencyKey: 'silent' };
  const refused = await post(`${service.url}/api/execute/webhook`, action);
  const { code, details } = refused.body.error;
  assert.deepEqual([refused.status, code, details], [400, 'target_unresolvable', { retryable: true }]);
  const { body } = await post<Decision>(`${service.url}/api/decide/webhook`, { action });
  assert.equal(body.recommendation, 'manual_review');
  assert.ok(body.warnings.some((warning) => warning.code === 'target_unresolved_now'));
});
