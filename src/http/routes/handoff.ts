// The browser handoff on the wire: 200 for every well-formed task, with a package if the target may be called. Nothing of
// a package is stored or logged.
import { Type } from '@sinclair/typebox';
import { HANDOFF_EXAMPLE } from '#src/discovery/documents/free-surfaces.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { HandoffActions, HandoffPackage, HandoffRequest } from '#src/domain/planning/handoff.ts';
import { isRefused, type Refused } from '#src/domain/refusal.ts';
import { Closed, Link, Nullable } from '#src/domain/schema-parts.ts';
import type { Settings } from '#src/http/deps.ts';
import { bodyEndpoint, type Endpoint, PART_UNAVAILABLE } from '#src/http/endpoint.ts';
import { type ParseDeps, rateRule } from '#src/http/request/parse-request.ts';
import { invalid, schemaCheck } from '#src/http/request/validation.ts';
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

export function handoffRoutes(deps: HandoffDeps): Endpoint[] {
  const { settings } = deps;
  const links = linksFrom(settings.baseUrl);
  return [
    bodyEndpoint(deps, ROUTES.handoff, {
      check,
      body: HandoffRequest,
      example: HANDOFF_EXAMPLE,
      rates: [rateRule('handoff', settings.rateLimitPerMinute)],
      ok: ['The package, or why the target is refused.', HandoffResponse],
      errors: { 400: 'The request is malformed, or an action is: see error.code.', 503: PART_UNAVAILABLE },
      async answer({ actions, ...task }) {
        if (!actionsCheck.matches(actions)) {
          const message = 'The actions do not match their schema: see details.';
          return invalid('invalid_handoff_actions', message, actionsCheck.faults(actions), '/actions');
        }
        const handedOff = await deps.handOffBrowser({ ...task, actions });
        if (isRefused(handedOff)) return handedOff;
        const { verdict, warnings } = handedOff;
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
        } satisfies typeof HandoffResponse.static;
      },
    }),
  ];
}
