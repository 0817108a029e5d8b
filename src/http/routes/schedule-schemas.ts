// Shapes of the schedule preview's answers.
import { Type } from '@sinclair/typebox';
import { LIMITS } from '#src/domain/limits.ts';
import { Schedule, SchedulePreviewRequest } from '#src/domain/planning/schedule.ts';
import { heading, Texts } from './document-schemas.ts';
import { surface } from './handoff-schemas.ts';
import { PolicyCheckResponse, Verdict, Warnings } from './policy.ts';
import { Closed, Count, Instant, Link } from './schema-parts.ts';

const { nextRuns } = LIMITS.schedule;

export const PaymentPolicy = Closed({
  previewCharged: Type.Literal(false),
  futurePaidSchedulingActive: Type.Literal(false),
  recommendedChargeModel: Type.Literal('per-executed-run'),
});

export const SchedulePreviewResponse = Closed({
  ...Verdict,
  status: Type.Literal('preview-only'),
  paid: Type.Literal(false),
  willExecute: Type.Literal(false),
  preview: Closed({
    schedule: Schedule,
    nextRuns: Type.Array(Instant, {
      minItems: 1,
      maxItems: nextRuns,
      description: `In order. The next ${nextRuns} of a daily schedule, the one of a schedule that runs once.`,
    }),
    localTimes: Type.Array(Type.String({ description: 'RFC 3339 with an offset.' }), {
      minItems: 1,
      maxItems: nextRuns,
      description: 'The same instants as clocks in the time zone of the schedule show them.',
    }),
    webhook: PolicyCheckResponse.properties.normalized,
    target: PolicyCheckResponse.properties.target,
  }),
  paymentPolicy: PaymentPolicy,
  warnings: Warnings,
  next: Closed({ capabilities: Link, decide: Link, execute: Link }),
});

export const ScheduleCapabilities = Closed({
  ...heading,
  ...surface,
  availability: Type.String(),
  executionModel: Type.Literal('preview-only'),
  scheduleTypes: Type.Array(
    Closed({
      type: Type.String(),
      description: Type.String(),
      nextRuns: Count,
      fields: Type.Array(
        Closed({
          name: Type.String(),
          required: Type.Boolean(),
          format: Type.String(),
          description: Type.String(),
        }),
      ),
    }),
  ),
  limits: Closed({ nextRuns: Count, timezoneMaxLength: Count, requestsPerMinute: Count }),
  rules: Texts,
  paymentPolicy: PaymentPolicy,
  planned: Closed({
    status: Type.Literal('planned'),
    method: Type.String(),
    path: Type.String({ description: 'Not served yet.' }),
    paid: Type.Boolean(),
    active: Type.Literal(false),
    chargeModel: Type.String(),
    description: Type.String(),
  }),
  examples: Type.Array(Closed({ title: Type.String(), request: SchedulePreviewRequest })),
  links: Closed({ preview: Link, execute: Link, openapi: Link }),
});
