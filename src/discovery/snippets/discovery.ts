// Finding out what the service is, what it costs and how it is called.
import { addressOf } from '#src/discovery/documents/document-parts.ts';
import type { Snippet, SnippetGroup } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '../facts.ts';
import { ROUTES } from '../routes.ts';
import { mcpConfig, mcpTools } from './mcp.ts';

export function discovery(facts: Facts): SnippetGroup {
  return {
    id: 'discovery',
    title: 'Find out',
    description:
      'What the service does, what it costs and how it is called, for programs. All free, no account.',
    snippets: [curlDiscovery(facts), pythonDiscovery(facts), mcpConfig(facts), mcpTools(facts)],
  };
}

const curlDiscovery = (facts: Facts): Snippet => ({
  id: 'curl-discovery',
  title: 'Read the documents with curl',
  language: 'shell',
  description: 'The guide for language models, the catalog of actions, and the interface description.',
  code: `set -e
curl -sS --fail-with-body ${addressOf(facts, ROUTES.llms)}
curl -sS --fail-with-body ${addressOf(facts, ROUTES.catalog)}
curl -sS --fail-with-body ${addressOf(facts, ROUTES.openapi)}
`,
});

const pythonDiscovery = (facts: Facts): Snippet => ({
  id: 'python-discovery',
  title: 'Read the price and the order of calls with Python',
  language: 'python',
  description: 'Standard library only.',
  code: `import json
from urllib.request import urlopen

with urlopen("${addressOf(facts, ROUTES.quickstart)}", timeout=30) as answer:
    quickstart = json.load(answer)

payment = quickstart["payment"]
print(payment["price"], "on", payment["network"], "by", payment["scheme"], "at", payment["route"])
print("payment is", "enforced" if payment["required"] else "not enforced (demo mode)")
for number, step in enumerate(quickstart["callFlow"], 1):
    print(f"{number}. {step}")
`,
});
