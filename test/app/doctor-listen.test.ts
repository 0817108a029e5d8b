// The doctor beside a running service: what that service states of itself is the doctor's finding too.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkListen } from '#src/app/doctor/listen.ts';
import { readConfig } from '#src/config.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { type HealthFacts, healthReport } from '#src/domain/monitoring/health.ts';
import { ALL_WELL } from '#test/support/all-well.ts';
import { loopbackServer } from '#test/support/loopback-server.ts';

async function beside(facts: HealthFacts | null) {
  const { ok, checks } = healthReport(facts ?? ALL_WELL);
  const health = { ok, service: SERVICE.name, version: '1', mode: 'demo', checks };
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

test('a service whose /health cannot be read is a problem', async () => {
  assert.equal((await beside(null)).state, 'problem');
});
