// Every figure that a service can expose, in Prometheus' text format.
import { prometheusFigures } from '#src/adapters/telemetry/prometheus.ts';
import { healthReport } from '#src/domain/monitoring/health.ts';
import { ALL_WELL } from './all-well.ts';
import { PAYMENT_FIGURES } from './figures.ts';

export async function everyFigure(): Promise<string> {
  const figures = prometheusFigures({ version: '1', runtime: 'bun' });
  figures.requestBegun()({ route: '/health', method: 'GET', status: 200, seconds: 0.001 });
  const { text } = await figures.exposition({
    storage: 'embedded',
    eventLog: { damagedEvents: 0, scrubbedAt: 1 },
    disk: { freeBytes: 9, logBytes: 2, readModelsBytes: 1, growthBytesPerDay: 0.5 },
    conditions: [{ part: 'readModels', code: 'unavailable' }],
    checks: healthReport({ ...ALL_WELL, facilitator: { ok: true }, chain: { ok: true } }).checks,
    checkpoint: { size: 9, signedAt: '2030-01-01T00:00:00.000Z', waitingMs: 2500 },
    executionsInFlight: 0,
    unclosableJobs: 0,
    lag: { lagEvents: 0, lagMs: 0 },
    payments: PAYMENT_FIGURES,
    witnesses: {
      configured: 1,
      quorum: 'w1',
      lastCosignedAt: null,
      lagSeconds: 0,
      witnesses: [{ name: 'w1', refusal: null, cosignedAt: '2030-01-01T00:00:00.000Z' }],
    },
  });
  return text;
}
