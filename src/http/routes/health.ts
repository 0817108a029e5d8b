// Health for balancers and operators: 503 only when the log is gone, for then nothing can be executed.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { Mode } from '#src/domain/event-fields.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { Closed, Nullable } from '#src/domain/schema-parts.ts';
import type { HealthFacts, HttpDeps } from '#src/http/deps.ts';
import { describe, unlisted } from '#src/http/openapi/operation.ts';
import { json } from '#src/http/response/json.ts';

const Part = Closed({ ok: Type.Boolean() });

export const HealthResponse = Closed({
  ok: Type.Boolean({
    description: 'Every part is ok. A part that is not does not make the status 503 by itself.',
  }),
  service: Type.String(),
  version: Type.String(),
  mode: Mode,
  egressExemption: Type.Optional(Type.Literal(true)),
  checks: Closed({
    eventLog: Part,
    readModels: Part,
    projections: Part,
    facilitator: Nullable(Part),
  }),
});

export function healthRoutes(deps: HttpDeps) {
  const { settings } = deps;
  return new Elysia()
    .get(
      ROUTES.health.path,
      async () => {
        const facts = await deps.health();
        return json(facts.eventLog.ok ? 200 : 503, responseOf(facts, settings));
      },
      describe(ROUTES.health, operation),
    )
    .get(
      ROUTES.live.path,
      () => json(200, { ok: true, service: SERVICE.name, version: SERVICE.version }),
      unlisted,
    );
}

function responseOf(
  { eventLog, readModels, projections, facilitator }: HealthFacts,
  { mode, egressExemption }: HttpDeps['settings'],
): typeof HealthResponse.static {
  const part = ({ ok }: { readonly ok: boolean }) => ({ ok });
  return {
    ok: [eventLog, readModels, projections, facilitator].every((fact) => fact?.ok !== false),
    service: SERVICE.name,
    version: SERVICE.version,
    mode,
    ...(egressExemption ? { egressExemption: true as const } : {}),
    checks: {
      eventLog: part(eventLog),
      readModels: part(readModels),
      projections: part(projections),
      facilitator: facilitator && part(facilitator),
    },
  };
}

const operation = {
  answers: {
    200: ['The service is running.', HealthResponse],
    503: ['The event log is gone: nothing can be executed.', HealthResponse],
  } as const,
};
