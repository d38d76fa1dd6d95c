/** The console itself. */
import "./nonce";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { createQueryClient, MODELS } from "./api/queries";
import { resume } from "./api/sign_in";
import { App } from "./app";
import { nonce } from "./nonce";
import { getSession } from "./session";
import { ErrorBoundary } from "./shell/error_boundary";
import { resolver, theme } from "./theme";

const client = createQueryClient();
await resume();
// Nearly every page shows them: they are asked for while the page is still being drawn.
if (getSession().account) void client.prefetchQuery(MODELS);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={resolver}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce}
      >
        <Notifications position="bottom-right" limit={4} containerWidth={360} />
        <QueryClientProvider client={client}>
          <Router base="/console">
            <ErrorBoundary>
              <App />
            </ErrorBoundary>
          </Router>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
