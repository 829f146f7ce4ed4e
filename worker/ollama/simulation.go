package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Simulation is what a stand-in pretends to be; no probe of the machine can know it.
type Simulation struct {
	MemoryBytes uint64 `json:"memory_bytes"` // of its one device
	FreeBytes   uint64 `json:"free_bytes"`
	Slots       int    `json:"slots"` // generations per model at once
}

// Simulation asks a stand-in what it pretends to be. A real Ollama answers with an error: ask only where Server said so.
func (c *Client) Simulation(ctx context.Context) (Simulation, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("control", "info").String(), nil)
	if err != nil {
		return Simulation{}, err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return Simulation{}, classify(ctx, "ask the stand-in for its memory", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Simulation{}, fmt.Errorf("ask the stand-in for its memory: status %d", resp.StatusCode)
	}
	var s Simulation
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return Simulation{}, fmt.Errorf("ask the stand-in for its memory: %w", err)
	}
	return s, nil
}
