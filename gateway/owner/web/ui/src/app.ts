// The dashboard. The file of a view is loaded when the view is opened for the first time, and defines the element that
// is named here.

import { dress } from "./lib/theme.js";
import "./lib/ui.js";
import "./views/shell.js";
import type { Route, Shell } from "./views/shell.js";

const routes: Record<string, Route> = {
  "": { element: "p-home", load: () => import("./views/home.js") },
  robots: { element: "p-robot", load: () => import("./views/robot.js") },
  memory: { element: "p-memory", load: () => import("./views/memory.js") },
  notifications: { element: "p-notifications", load: () => import("./views/notifications.js") },
  timers: { element: "p-timers", load: () => import("./views/timers.js") },
  turns: { element: "p-turns", load: () => import("./views/turns.js") },
  sensed: { element: "p-sensed", load: () => import("./views/sensed.js") },
  firmware: { element: "p-firmware", load: () => import("./views/firmware.js") },
  engines: { element: "p-engines", load: () => import("./views/engines.js") },
  doctor: { element: "p-doctor", load: () => import("./views/doctor.js") },
  logs: { element: "p-logs", load: () => import("./views/logs.js") },
  backup: { element: "p-backup", load: () => import("./views/backup.js") },
  connections: { element: "p-connections", load: () => import("./views/connections.js") },
  settings: { element: "p-settings", load: () => import("./views/settings.js") },
  first: { element: "p-first", load: () => import("./views/first.js") },
};

dress();
const shell = document.createElement("p-shell") as Shell;
shell.routes = routes;
document.body.append(shell);
