// The browser handoff on the wire: 200 for every well-formed task, with a package if the target may be called. Nothing of
// a package is stored or logged.
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ROUTES } from '#src/discovery/routes.ts';
import { HandoffActions, HandoffPackage, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Link, Nullable } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { describe } from '#src/http/openapi/operation.ts';
import { BODY_ERRORS, type ParseDeps, parseRequest, rateRule } from '#src/http/request/parse-request.ts';
import { type Invalid, invalid, schemaCheck } from '#src/http/request/validation.ts';
import { refusalAnswer } from '#src/http/response/errors.ts';
import { json } from '#src/http/response/json.ts';
import { linksFrom } from '#src/http/response/links.ts';
import type { Handoff } from '#src/usecases/planning/hand-off-browser.ts';
import { PolicyShown, policyOf, Verdict, verdictShown, Warnings } from './policy.ts';

const HandoffResponse = Closed({
  ...Verdict,
  handoff: Nullable(HandoffPackage),
  policy: PolicyShown,
  warnings: Warnings,
  next: Closed({ capabilities: Link, secretsPolicy: Link, decide: Link }),
});

/** The actions are checked apart: their faults have a code of their own. */
const check = schemaCheck(Closed({ ...HandoffRequest.properties, actions: Type.Optional(Type.Unknown()) }));
const actionsCheck = schemaCheck(HandoffActions);

export type HandoffDeps = ParseDeps &
  Settings<'baseUrl' | 'policyMode' | 'targetQuota' | 'rateLimitPerMinute'> & {
    handOffBrowser(
      request: HandoffRequest,
    ): Promise<Handoff | Refused<'invalid_request' | 'invalid_handoff_actions'>>;
  };

export function handoffRoutes(deps: HandoffDeps) {
  const rates = [rateRule('handoff', deps.settings.rateLimitPerMinute)];
  return new Elysia().post(
    ROUTES.handoff.path,
    async ({ request }) => {
      const taken = await parseRequest(deps, request, { rates, check });
      if (isRefused(taken)) return refusalAnswer(taken);
      const actions = readActions(taken.body.actions);
      if ('refused' in actions) return refusalAnswer(actions);
      const handedOff = await deps.handOffBrowser({ ...taken.body, actions });
      if (isRefused(handedOff)) return refusalAnswer(handedOff);
      return json(200, responseOf(handedOff, deps.settings));
    },
    { parse: 'none', ...describe(ROUTES.handoff, operation) },
  );
}

function readActions(given: unknown): HandoffRequest['actions'] | Invalid<'invalid_handoff_actions'> {
  if (actionsCheck.matches(given)) return given;
  const message = 'The actions do not match their schema: see details.';
  return invalid('invalid_handoff_actions', message, actionsCheck.faults(given), '/actions');
}

function responseOf(
  { verdict, warnings }: Handoff,
  settings: HandoffDeps['settings'],
): typeof HandoffResponse.static {
  const links = linksFrom(settings.baseUrl);
  return {
    ...verdictShown(verdict),
    handoff: verdict.allowed ? verdict.handoff : null,
    policy: policyOf(settings),
    warnings: [...warnings],
    next: {
      capabilities: links.at(ROUTES.handoffCapabilities.path),
      secretsPolicy: links.at(ROUTES.secretsPolicy.path),
      decide: links.at(ROUTES.decide.path),
    },
  };
}

const operation = {
  body: HandoffRequest,
  answers: { 200: ['The package, or why the target is refused.', HandoffResponse] } as const,
  errors: {
    ...BODY_ERRORS,
    400: 'The request is malformed, or an action is: see error.code.',
    503: 'A part of the service is unavailable: see error.code.',
  },
};
