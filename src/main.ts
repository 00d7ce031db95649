import { abortOnStopSignal, ignoreUserSignals } from './util/process-end.js';

// The server process. It handles signals first, because loading everything else takes half a second.
ignoreUserSignals();
const stopping = abortOnStopSignal();
const { runServer } = await import('./server-process.js');
await runServer(process.env, stopping);
