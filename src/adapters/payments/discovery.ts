// What catalogues read of a paid route: the extension bazaar in version 2, the requirement's `outputSchema` in version 1. A
// 402 is also passed on by proxies, and nginx passes on 4 kB of headers: its header has the smallest form that clients and
// catalogues accept. The whole schema is in the body of the 402, and in /.well-known/x402.json.
import { bazaarResourceServerExtension, declareDiscoveryExtension } from '@x402/extensions/bazaar';
import type { JsonObject } from '#src/domain/canonical-json.ts';
import { portableSchema } from '#src/domain/portable-schema.ts';

export type PaidRoute = {
  /** Begins with a slash. */
  readonly path: string;
  /** At most 450 characters. */
  readonly description: string;
  /** Path of the service's icon. */
  readonly icon: string;
  /** JSON Schema of the body, without references. */
  readonly inputSchema: { readonly [name: string]: unknown };
  readonly inputExample: { readonly [name: string]: unknown };
  readonly outputExample: { readonly [name: string]: unknown };
};

type Extensions = Readonly<Record<string, unknown>>;

export function describeRoute(route: PaidRoute): {
  readonly discovery: Extensions;
  readonly discoveryInHeader: Extensions;
  readonly outputSchemaV1: JsonObject;
} {
  const { inputSchema, inputExample, outputExample } = copyJson<
    Record<'inputSchema' | 'inputExample' | 'outputExample', JsonObject>
  >({ ...route, inputSchema: portableSchema(route.inputSchema) });
  const declared = declareDiscoveryExtension({
    bodyType: 'json',
    input: inputExample,
    inputSchema,
    output: { example: outputExample },
  });
  const method = { method: 'POST', adapter: { getPath: () => route.path } };
  const { required = [] } = inputSchema;
  return {
    discovery: { bazaar: bazaarResourceServerExtension.enrichDeclaration?.(declared.bazaar, method) },
    discoveryInHeader: {
      bazaar: {
        info: { input: { type: 'http', method: 'POST', bodyType: 'json', body: inputExample } },
        schema: {
          properties: {
            input: { properties: { body: { type: 'object', required } } },
            output: { properties: { example: { type: 'object' } } },
          },
        },
      },
    },
    outputSchemaV1: {
      input: { type: 'http', method: 'POST', bodyType: 'json', bodyFields: inputSchema, discoverable: true },
      output: outputExample,
    },
  };
}

/** Without the symbols that a schema library attaches to its schemas. */
export const copyJson = <T>(value: unknown): T => JSON.parse(JSON.stringify(value)) as T;
