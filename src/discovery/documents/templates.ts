// The templates of the catalog: an example request for each typical kind of target, and its value for both sides.
import { type Static, Type } from '@sinclair/typebox';
import { Text, Texts } from '#src/discovery/document.ts';
import { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { Closed } from '#src/domain/schema-parts.ts';

export const CATEGORIES = [
  'automation',
  'business-workflows',
  'chatops',
  'data',
  'developer-tools',
  'ops',
] as const;

export const templateSchema = {
  id: Text,
  category: Type.Unsafe<(typeof CATEGORIES)[number]>(Text),
  title: Text,
  description: Text,
  tags: Texts,
  searchPhrases: Texts,
  /** Words in capitals are to be replaced, and so is the idempotencyKey: one for each task. */
  exampleRequest: WebhookRequest,
  buyerValue: Text,
  targetOwnerValue: Text,
  evidence: Text,
};
const Template = Closed(templateSchema);

export const TEMPLATES: readonly Static<typeof Template>[] = [
  {
    id: 'chat-incoming-webhook',
    category: 'chatops',
    title: 'Post to a chat incoming webhook',
    description:
      'One message to a chat channel. The webhook URL is the credential: it is never stored or shown.',
    tags: ['chat', 'incoming-webhook', 'notification', 'message'],
    searchPhrases: [
      'notify a channel with proof of delivery',
      'post to an incoming webhook without an account',
    ],
    exampleRequest: {
      url: 'https://chat.example.com/hooks/YOUR-HOOK-ID',
      method: 'POST',
      body: { text: 'Release 2026.01.2 is out: 14 of 14 checks passed.' },
      idempotencyKey: 'release-2026-01-2-chat',
    },
    buyerValue: 'One message, and a receipt that states whether the channel accepted it.',
    targetOwnerValue: 'The channel keeps its own webhook secret and can revoke it at any time.',
    evidence: 'The channel shows the message once.',
  },
  {
    id: 'bot-message-api',
    category: 'chatops',
    title: 'Send a message through a bot API',
    description: 'One message by a bot API, with a bot token of few rights in the authorization header.',
    tags: ['bot', 'chat', 'message', 'api'],
    searchPhrases: ['send a bot message through an HTTP API', 'bot message with a signed receipt'],
    exampleRequest: {
      url: 'https://bots.example.com/v1/channels/CHANNEL-ID/messages',
      method: 'POST',
      headers: { authorization: 'Bearer YOUR-BOT-TOKEN' },
      body: { text: 'Build 4711 failed in step "integration tests".' },
      idempotencyKey: 'build-4711-bot',
    },
    buyerValue: 'A bot message without running a bot, and the status of the answer, signed.',
    targetOwnerValue: 'The relay signs the call (Standard Webhooks): the API can verify its origin.',
    evidence: 'The conversation shows the message once.',
  },
  {
    id: 'alert-bridge',
    category: 'ops',
    title: 'Raise an alert through an alert bridge',
    description: 'One event for an on-call endpoint. Its deduplication key makes retries safe.',
    tags: ['alert', 'incident', 'on-call', 'monitoring'],
    searchPhrases: ['trigger an on-call page by webhook', 'prove that an incident was reported'],
    exampleRequest: {
      url: 'https://alerts.example.com/v2/events/YOUR-ROUTING-ID',
      method: 'POST',
      body: { dedupKey: 'disk-db-3', severity: 'warning', summary: 'Disk of db-3 is 91 % full.' },
      idempotencyKey: 'alert-disk-db-3-2026-01-02',
      retry: { attempts: 3, backoffMs: 500 },
    },
    buyerValue: 'A passing failure of the bridge is retried; the receipt shows each attempt.',
    targetOwnerValue: 'Every attempt carries the same webhook-id, so a repeat is recognised.',
    evidence: 'The bridge shows one alert with this deduplication key.',
  },
  {
    id: 'automation-catch-hook',
    category: 'automation',
    title: 'Start a no-code automation by its catch hook',
    description: 'One event that starts a no-code automation. The hook URL is the credential.',
    tags: ['no-code', 'automation', 'catch-hook', 'trigger'],
    searchPhrases: ['trigger a no-code automation from an agent', 'call a catch hook once with proof'],
    exampleRequest: {
      url: 'https://automation.example.com/hooks/catch/YOUR-HOOK-ID',
      method: 'POST',
      body: { event: 'form.submitted', form: 'feedback', submission: 'sub-812' },
      idempotencyKey: 'feedback-sub-812',
    },
    buyerValue: 'One call reaches every service that the automation connects to.',
    targetOwnerValue: 'One well-formed event, with a webhook-id by which repeats are removed.',
    evidence: 'The history of the automation shows one run for this event.',
  },
  {
    id: 'ci-dispatch',
    category: 'developer-tools',
    title: 'Dispatch a CI workflow',
    description: 'One dispatch, with a short-lived token. It is not idempotent: there is one attempt.',
    tags: ['ci', 'build', 'deploy', 'dispatch'],
    searchPhrases: ['trigger a CI workflow from an agent', 'start a deployment by webhook'],
    exampleRequest: {
      url: 'https://ci.example.com/api/repos/OWNER/REPOSITORY/dispatches',
      method: 'POST',
      headers: { authorization: 'Bearer SHORT-LIVED-CI-TOKEN' },
      body: { event: 'agent-rebuild', ref: 'main' },
      idempotencyKey: 'rebuild-main-2026-01-02',
      retry: { attempts: 1 },
    },
    buyerValue: 'Proof that the build was requested.',
    targetOwnerValue: 'An audit trail: when it was requested, what was answered, who paid.',
    evidence: 'The CI system shows one run for this dispatch.',
  },
  {
    id: 'analytics-ingest',
    category: 'data',
    title: 'Send an event to an analytics ingest endpoint',
    description: 'One event with an id, by which the endpoint drops repeats: it may be retried.',
    tags: ['analytics', 'event', 'ingest', 'data'],
    searchPhrases: ['send an analytics event from an agent', 'record a conversion by webhook'],
    exampleRequest: {
      url: 'https://ingest.example.com/v1/events',
      method: 'POST',
      headers: { 'x-write-key': 'YOUR-WRITE-KEY' },
      body: { id: 'evt-90211', name: 'report.generated', at: '2026-01-02T03:04:05Z' },
      idempotencyKey: 'evt-90211',
      retry: { attempts: 3, backoffMs: 250 },
    },
    buyerValue: 'A third party can verify that and when the event was sent.',
    targetOwnerValue: 'A write key with few rights is enough; no other access is given.',
    evidence: 'The analytics store holds one event with this id.',
  },
  {
    id: 'ticket-create',
    category: 'business-workflows',
    title: 'Open a ticket',
    description: 'One ticket. By its external id the tracker can refuse a second one.',
    tags: ['ticket', 'support', 'issue', 'help-desk'],
    searchPhrases: ['open a support ticket from an agent', 'prove that a ticket was filed'],
    exampleRequest: {
      url: 'https://tickets.example.com/api/tickets',
      method: 'POST',
      headers: { authorization: 'Bearer SHORT-LIVED-TICKET-TOKEN' },
      body: { externalId: 'task-5521', subject: 'Export job fails for tenant 12', priority: 'high' },
      idempotencyKey: 'task-5521-ticket',
    },
    buyerValue: 'One ticket, also if the agent restarts: a repeat with the key is a replay.',
    targetOwnerValue: 'No duplicate tickets from agents that retry.',
    evidence: 'The tracker shows one ticket with this external id.',
  },
];
