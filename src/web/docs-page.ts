import 'openapi-explorer';
import { byId } from './dom.js';

const explorer = byId('api');

// The server URL in the OpenAPI document is relative, because a proxy may add a path prefix. The library does not
// resolve it.
explorer.setAttribute('server-url', new URL('.', document.baseURI).href);

// The Content-Security-Policy does not allow the library's menu image, a `data:` URL, so menus keep the browser's own
// style. The library also ignores the system's setting for reduced motion.
const styles = new CSSStyleSheet();
styles.replaceSync(`
  select { appearance: auto; background-image: none; }
  @media (prefers-reduced-motion) { * { transition: none !important; } }
`);
explorer.shadowRoot?.adoptedStyleSheets.push(styles);
// Applies the styles to `api-response` elements that are created later:
// https://lit.dev/docs/api/LitElement/#LitElement.elementStyles
const response = customElements.get('api-response') as unknown as { elementStyles: CSSStyleSheet[] };
response.elementStyles.push(styles);
