// What a catalogue may publish of a paid route (extension bazaar; in version 1 the requirement's outputSchema).
import { bazaarResourceServerExtension, declareDiscoveryExtension } from '@x402/extensions/bazaar';
import type { Json } from '#src/domain/canonical-json.ts';
import type { PaidRoute } from './terms.ts';

export type Discovery = {
  /** For `extensions`: `{bazaar: …}`. */
  readonly extension: Readonly<Record<string, unknown>>;
  readonly outputSchemaV1: { readonly [name: string]: Json };
};

export function describeRoute(route: PaidRoute): Discovery {
  const { inputSchema, inputExample, outputExample } = plain(route);
  const declared = declareDiscoveryExtension({
    bodyType: 'json',
    input: inputExample,
    inputSchema,
    output: { example: outputExample },
  });
  const method = { method: 'POST', adapter: { getPath: () => route.path } };
  return {
    extension: { bazaar: bazaarResourceServerExtension.enrichDeclaration?.(declared.bazaar, method) },
    outputSchemaV1: {
      input: { type: 'http', method: 'POST', bodyType: 'json', bodyFields: inputSchema, discoverable: true },
      output: outputExample,
    } as { readonly [name: string]: Json },
  };
}

/** As it will be read: what a schema library keeps beside the schema is no part of it. */
function plain(route: PaidRoute) {
  const { inputSchema, inputExample, outputExample } = route;
  return JSON.parse(JSON.stringify({ inputSchema, inputExample, outputExample })) as {
    readonly [K in 'inputSchema' | 'inputExample' | 'outputExample']: Record<string, unknown>;
  };
}
