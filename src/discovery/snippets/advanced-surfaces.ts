// The free surfaces beside execution.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import { HANDOFF_EXAMPLE } from '#src/discovery/documents/handoff-capabilities.ts';
import { SCHEDULE_EXAMPLES } from '#src/discovery/documents/schedule-capabilities.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '../facts.ts';
import { ACTION } from '../paid-routes.ts';
import { ROUTES } from '../routes.ts';
import { pyLiteral, shellJson } from './literals.ts';
import { NO_PYTHON_PAYMENT, PY_IMPORTS, PY_POST } from './python.ts';

export function advancedSurfaces(facts: Facts): SnippetGroup {
  return {
    id: 'advanced-surfaces',
    title: 'Free surfaces',
    description:
      'Look at a target before paying, package steps for a browser agent, preview a schedule, call the canary. Nothing here is charged, and nothing is sent to your target.',
    snippets: [
      curlPolicyCheck(facts),
      pythonPolicyCheck(facts),
      curlHandoff(facts),
      curlSchedulePreview(facts),
      curlCanary(facts),
    ],
  };
}

const post = (facts: Facts, route: (typeof ROUTES)[keyof typeof ROUTES], body: unknown) =>
  `curl -sS --fail-with-body ${addressOf(facts, route)} \\
  -H 'content-type: application/json' \\
  -d ${shellJson(body)}
`;

const curlPolicyCheck = (facts: Facts): Snippet => ({
  id: 'curl-policy-check',
  title: 'Look at a request before paying for it, with curl',
  language: 'shell',
  description: 'Whether the target may be called, and what would be sent.',
  code: post(facts, ROUTES.checkPolicy, ACTION),
});

const pythonPolicyCheck = (facts: Facts): Snippet => ({
  id: 'python-policy-check',
  title: 'Look at a request before paying for it, with Python',
  language: 'python',
  description: `Exits with 1 where the target is refused. ${NO_PYTHON_PAYMENT}`,
  code: `${PY_IMPORTS}


${PY_POST}


checked = post("${addressOf(facts, ROUTES.checkPolicy)}", ${pyLiteral(ACTION)})
if not checked["allowed"]:
    sys.exit(f"refused: {checked['error']['code']} {checked['error']['message']}")
print("allowed:", checked["target"]["hostname"], json.dumps(checked["normalized"]))
for warning in checked["warnings"]:
    print("-", warning["code"], warning["message"])
`,
});

const curlHandoff = (facts: Facts): Snippet => ({
  id: 'curl-handoff',
  title: 'Package steps for a browser agent',
  language: 'shell',
  description: 'No step is executed here, and there is no receipt.',
  code: post(facts, ROUTES.handoff, HANDOFF_EXAMPLE),
});

const DAILY = SCHEDULE_EXAMPLES.at(-1)?.request;

const curlSchedulePreview = (facts: Facts): Snippet => ({
  id: 'curl-schedule-preview',
  title: 'Preview a schedule',
  language: 'shell',
  description: 'The next runs, across daylight saving. Nothing is scheduled.',
  code: post(facts, ROUTES.schedulePreview, DAILY),
});

const curlCanary = (facts: Facts): Snippet => ({
  id: 'curl-canary',
  title: 'Send something to the canary',
  language: 'shell',
  description: 'Called directly, as here, it is free: it answers with method, size and hash of what arrived.',
  code: post(facts, ROUTES.canaryPost, ACTION.body),
});
