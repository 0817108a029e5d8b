// Targets that tell people something: chat, bots, alerts.
import type { Template } from './templates.ts';

export const MESSAGES: readonly Template[] = [
  {
    id: 'chat-incoming-webhook',
    category: 'chatops',
    title: 'Post to a chat incoming webhook',
    description:
      'Sends one message to the incoming webhook of a chat channel. The webhook URL is the credential: it is never stored or shown.',
    tags: ['chat', 'incoming-webhook', 'notification', 'message'],
    searchPhrases: [
      'send a message to a chat channel by webhook',
      'notify a team channel with proof of delivery',
      'post to an incoming webhook without an account',
    ],
    exampleRequest: {
      url: 'https://chat.example.com/hooks/YOUR-HOOK-ID',
      method: 'POST',
      body: { text: 'Release 2026.01.2 is out: 14 of 14 checks passed.' },
      idempotencyKey: 'release-2026-01-2-chat',
    },
    buyerValue: 'One message, and a receipt that says whether the channel took it.',
    targetOwnerValue: 'The channel keeps its own webhook secret and can revoke it at any time.',
    evidence: 'The channel shows the message once.',
  },
  {
    id: 'bot-message-api',
    category: 'chatops',
    title: 'Send a message through a bot API',
    description:
      'Calls the message endpoint of a bot API with a bot token in the authorization header. Send a token of few rights; it is forwarded and not stored.',
    tags: ['bot', 'chat', 'message', 'api'],
    searchPhrases: [
      'send a bot message through an HTTP API',
      'let an agent message users as a bot',
      'bot message with a signed receipt',
    ],
    exampleRequest: {
      url: 'https://bots.example.com/v1/channels/CHANNEL-ID/messages',
      method: 'POST',
      headers: { authorization: 'Bearer YOUR-BOT-TOKEN' },
      body: { text: 'Build 4711 failed in step "integration tests".' },
      idempotencyKey: 'build-4711-bot',
    },
    buyerValue: 'A bot message without running a bot, and the status that the API answered, signed.',
    targetOwnerValue:
      'The call is signed by the relay (Standard Webhooks), so the API can tell where it came from.',
    evidence: 'The conversation shows the message once.',
  },
  {
    id: 'alert-bridge',
    category: 'ops',
    title: 'Raise an alert through an alert bridge',
    description:
      'Sends one event to an alert bridge or on-call endpoint. A deduplication key in the body makes repeats safe, so it may be retried.',
    tags: ['alert', 'incident', 'on-call', 'monitoring'],
    searchPhrases: [
      'raise an alert from an agent',
      'trigger an on-call page by webhook',
      'prove that an incident was reported',
    ],
    exampleRequest: {
      url: 'https://alerts.example.com/v2/events/YOUR-ROUTING-ID',
      method: 'POST',
      body: { dedupKey: 'disk-db-3', severity: 'warning', summary: 'Disk of db-3 is 91 % full.' },
      idempotencyKey: 'alert-disk-db-3-2026-01-02',
      retry: { attempts: 3, backoffMs: 500 },
    },
    buyerValue:
      'A passing failure of the bridge is retried, and the receipt shows when each attempt was made.',
    targetOwnerValue: 'Every attempt carries the same webhook-id, so a repeat is recognised.',
    evidence: 'The bridge shows one alert with this deduplication key.',
  },
];
