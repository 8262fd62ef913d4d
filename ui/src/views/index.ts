// Every view: its address, its name, its key, and the component that draws it.
import type { ComponentType } from "preact";
import { Ask } from "./ask";
import { Compare } from "./compare";
import { Graph } from "./graph";
import { Health } from "./health";
import { Inbox } from "./inbox";
import { Insights, Threads } from "./insights";
import { Memories } from "./memories";
import { Memory } from "./memory";
import { Sharing } from "./sharing";
import { Time } from "./time";
import { Trace } from "./trace";

export interface View {
  path: string;
  name: string;
  /** The letter after "g"; views without one are not in the navigation. */
  key?: string;
  component: ComponentType<any>;
  /** The operation without which the view is not in the navigation. */
  needs?: string;
  /** Whether the question in the address goes along to this view. */
  keepsQuestion?: boolean;
}

export const VIEWS: View[] = [
  { path: "/ask", name: "Ask", key: "a", component: Ask, keepsQuestion: true },
  { path: "/trace", name: "Trace", key: "t", component: Trace, keepsQuestion: true },
  { path: "/compare", name: "Compare", key: "c", component: Compare, keepsQuestion: true },
  { path: "/memories", name: "Memories", key: "m", component: Memories },
  { path: "/memories/:id", name: "Memory", component: Memory },
  { path: "/inbox", name: "Inbox", key: "b", component: Inbox, needs: "inbox" },
  { path: "/graph", name: "Graph", key: "r", component: Graph },
  { path: "/time", name: "Time", key: "i", component: Time },
  { path: "/insights", name: "Insights", key: "s", component: Insights },
  { path: "/threads", name: "Threads", key: "h", component: Threads },
  { path: "/sharing", name: "Sharing", key: "p", component: Sharing },
  { path: "/health", name: "Health", key: "e", component: Health },
];
