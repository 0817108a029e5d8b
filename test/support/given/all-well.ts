// Every part of a demo service works.
import type { HealthFacts } from '#src/domain/monitoring/health.ts';

export const ALL_WELL: HealthFacts = {
  eventLog: { ok: true },
  signingKey: { ok: true },
  checkpoint: { problem: null, waitingMs: 0 },
  readModels: { ok: true },
  projection: { lagMs: 0, barrier: null },
  facilitator: null,
  chain: null,
  schedules: null,
};
