import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "./api/queries.ts";
import "./design/tokens.css";
import "./design/base.css";
import { router } from "./router.tsx";
import { preferred } from "./shell/theme.ts";

document.documentElement.dataset["theme"] = preferred(); // before anything is drawn

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
