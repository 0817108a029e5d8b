// The three free surfaces, as the catalog and their own documents describe them.
import { endpoint, endpointSchema, Text } from '#src/discovery/document.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { Closed } from '#src/domain/schema-parts.ts';

export const surfaceSchema = {
  id: Text,
  status: Text,
  category: Text,
  title: Text,
  description: Text,
  endpoint: Closed(endpointSchema),
};

export const scheduledActions = () => ({
  id: 'scheduled.webhook',
  status: 'preview-only',
  category: 'automation',
  title: 'Schedule preview',
  description:
    'Checks the shape of a schedule and the target policy, and shows the next runs. Nothing is scheduled, executed or charged.',
  availability:
    'Durable paid scheduling is not active. It is planned to charge once per executed run, not per schedule definition, ' +
    'and to answer with a schedule id and the links of each run.',
  endpoint: endpoint(ROUTES.schedulePreview),
});

export const browserHandoff = () => ({
  id: 'browser.handoff',
  status: 'active-handoff-only',
  category: 'automation',
  title: 'Browser handoff package',
  description:
    'Builds a structured package of browser steps for an external browser-capable agent. No step is executed here and no receipt is issued.',
  safeUse:
    'Hand the package to an agent that you trust with the site. Put no passwords or session tokens into its texts.',
  endpoint: endpoint(ROUTES.handoff),
});

export const secretStorage = () => ({
  id: 'secrets.policy',
  status: 'policy-only',
  category: 'ops',
  title: 'Secret handling policy',
  description:
    'No long-lived target-side secret is stored: credentials are sent with each call and forwarded to the target only.',
  safeUse:
    'Use target-owned webhook secrets or short-lived per-request headers. Never send wallet private keys, seed phrases, ' +
    'database URLs or long-lived admin credentials.',
  endpoint: endpoint(ROUTES.secretsPolicy),
});
