// The machine's own Chromium, without a screen and without a network of its own: started through its debugging pipe,
// which works under both runtimes, with an empty profile, and surely ended.
import {
  type Browser,
  type BrowserContextOptions,
  type ConsoleMessage,
  chromium,
  type Page,
} from 'playwright-core';
import { chromiumPath } from './requirements.ts';

export type Window = Pick<
  BrowserContextOptions,
  'colorScheme' | 'viewport' | 'javaScriptEnabled' | 'permissions'
>;

/** What a page said and asked for while it was open. */
export type Heard = {
  /** Console messages and script errors; a breach of the content security policy is one. */
  readonly said: string[];
  /** Addresses of every request. */
  readonly requests: string[];
};

export type OpenPage = { readonly page: Page; readonly heard: Heard; readonly status: number };

export type TestBrowser = {
  /** In a profile of its own. */
  open(url: string, window?: Window): Promise<OpenPage>;
  /** All windows and the process. */
  close(): Promise<void>;
};

/** The browser loads the icon when it likes, also after a test has cut the page off the network. */
const isIconCutOff = (message: ConsoleMessage) =>
  message.location().url.endsWith('/favicon.svg') && message.text().includes('ERR_INTERNET_DISCONNECTED');

export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: chromiumPath() ?? '',
    headless: true,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
  return {
    async open(url, window = {}) {
      const context = await browser.newContext(window);
      const page = await context.newPage();
      const heard: Heard = { said: [], requests: [] };
      page.on('console', (message) => {
        if (!isIconCutOff(message)) heard.said.push(message.text());
      });
      page.on('pageerror', (error) => heard.said.push(String(error)));
      page.on('request', (request) => heard.requests.push(request.url()));
      const response = await page.goto(url);
      return { page, heard, status: response?.status() ?? 0 };
    },
    close: () => browser.close(),
  };
}
