// What the operations are grouped by, in words.
import type { RouteTag } from './route-facts.ts';

export const TAGS: Readonly<Record<RouteTag, string>> = {
  execution: 'One outbound HTTPS request, executed at once and receipted. Paid where payment is enforced.',
  policy: 'What can be asked before paying, free.',
  records:
    'What became of a job, its receipt and its decision. Target, headers, body and payer are never shown.',
  verification: 'Whether a receipt is genuine and agrees with its job, check by check.',
  transparency: 'How the service does, for everybody: proofs, decisions, monitoring and trust, redacted.',
  planning: 'Plans that nothing is executed of here: browser steps for another agent, schedules.',
  discovery: 'Documents that tell of the service.',
  service: 'The service itself: MCP, health, a target to test against, this description.',
};
