// The doctor beside a running service: what that service states of itself is the doctor's finding too.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkListen } from '#src/app/doctor/listen.ts';
import { readConfig } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { type HealthFacts, healthReport } from '#src/domain/monitoring/health.ts';
import { type WitnessesStatus, witnessesShown } from '#src/domain/monitoring/witnesses.ts';
import { ALL_WELL } from '#test/support/given/all-well.ts';
import { loopbackServer } from '#test/support/process/loopback-server.ts';

async function beside(facts: HealthFacts | null, witnesses?: WitnessesStatus) {
  const { ok, checks } = healthReport(facts ?? ALL_WELL);
  const more = witnesses && { witnesses: witnessesShown(witnesses) };
  const health = { ok, service: SERVICE.name, version: '1', mode: 'demo', checks, ...more };
  await using server = await loopbackServer((request, response) => {
    const isHealth = request.url === '/health';
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify(isHealth ? (facts === null ? {} : health) : { ok: true, service: SERVICE.name }),
    );
  });
  return await checkListen(readConfig({ PORT: new URL(server.url).port }));
}

test('a service whose parts all work: fine', async () => {
  assert.equal((await beside(ALL_WELL)).state, 'ok');
});

test('a part that is not ok is a problem, in the words of the service', async () => {
  const found = await beside({ ...ALL_WELL, readModels: { ok: false, problem: 'rebuilding' } });
  assert.equal(found.state, 'problem');
  assert.match(JSON.stringify(found), /readModels: The read models are built again from the event log/);
});

test('witnesses that do not cosign are a warning, by name and reason', async () => {
  const witnesses = (refusal: string | null): WitnessesStatus => ({
    configured: 2,
    quorum: 'q',
    lastCosignedAt: null,
    lagSeconds: 0,
    witnesses: [
      { name: 'w1', refusal: null, cosignedAt: null },
      { name: 'w2', refusal, cosignedAt: null },
    ],
  });
  assert.equal((await beside(ALL_WELL, witnesses(null))).state, 'ok');
  const found = await beside(ALL_WELL, witnesses('http_403'));
  assert.equal(found.state, 'warning');
  assert.match(found.message, /that do not cosign: w2 \(http_403\)/);
  const readModels = { ok: false, problem: 'rebuilding' } as const;
  const both = await beside({ ...ALL_WELL, readModels }, witnesses('http_403'));
  assert.equal(both.state, 'problem');
  assert.match(both.message, /readModels: .*w2 \(http_403\)/);
});

test('a service whose /health cannot be read is a problem', async () => {
  assert.equal((await beside(null)).state, 'problem');
});
