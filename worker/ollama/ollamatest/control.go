package ollamatest

import "net/http"

// Info is what GET /control/info answers: that this is a simulation, and the memory that no probe of the machine finds.
type Info struct {
	Simulated       bool   `json:"simulated"` // always true
	Name            string `json:"name"`
	Version         string `json:"version"`
	MemoryBytes     int64  `json:"memory_bytes"`      // of the device; 0 without one
	FreeBytes       int64  `json:"free_bytes"`        // what no loaded model has
	HostMemoryBytes int64  `json:"host_memory_bytes"` // what may spill; 0 = without limit
	Slots           int    `json:"slots"`             // OLLAMA_NUM_PARALLEL
	LoadedModels    int    `json:"loaded_models"`
}

// Info describes the server.
func (s *Server) Info() Info {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	free, _ := s.sched.free()
	return Info{
		Simulated: true, Name: s.cfg.Name, Version: s.cfg.Version, MemoryBytes: int64(s.cfg.Memory), FreeBytes: free,
		HostMemoryBytes: int64(s.cfg.HostMemory), Slots: s.cfg.Slots, LoadedModels: len(s.sched.loaded),
	}
}

func (s *Server) controlRoutes() {
	s.mux.HandleFunc("GET /control/info", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Info())
	})
	s.mux.HandleFunc("GET /control/calls", func(w http.ResponseWriter, _ *http.Request) {
		calls, counts := s.calls.snapshot()
		probes, _ := s.probes.snapshot()
		writeJSON(w, http.StatusOK, map[string]any{"calls": append([]Call{}, calls...), "counts": counts, "probes": append([]Call{}, probes...)})
	})
	s.mux.HandleFunc("POST /control/faults", s.postFaults)
	s.mux.HandleFunc("POST /control/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
}

// postFaults replaces the faults; the body is {"faults": [...]}, and with "seed" the seed too.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Seed   *uint64 `json:"seed"`
		Faults []Fault `json:"faults"`
	}
	if !decode(w, r, &req) {
		return
	}
	if err := checkFaults(req.Faults); err != nil {
		writeError(w, http.StatusBadRequest, "%v", err)
		return
	}
	seed := s.cfg.Seed
	if req.Seed != nil {
		seed = *req.Seed
	}
	s.dice.reset(seed, req.Faults)
	w.WriteHeader(http.StatusNoContent)
}
