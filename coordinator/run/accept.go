package run

// Acceptance is what was expected of a run against what was done, computed from its events.
type Acceptance struct {
	Expected  int `json:"expected"` // keys submitted, and those that the script expected
	Covered   int `json:"covered"`
	Handled   int `json:"handled"` // failed or left out, and waived or made good
	Failed    int `json:"failed"`
	Uncovered int `json:"uncovered"` // never worked on, or missing from an answer

	FailedKeys    []string  `json:"failed_keys,omitempty"`    // the first of them
	UncoveredKeys []string  `json:"uncovered_keys,omitempty"` // the first of them
	Waived        []Handled `json:"waived,omitempty"`
	Fallbacks     []Handled `json:"fallbacks,omitempty"`
	Swallowed     []Missed  `json:"swallowed,omitempty"` // delivered failures that the script neither threw nor waived; the first of them
	SwallowedAll  int       `json:"swallowed_all,omitempty"`
	ByCode        int       `json:"by_code,omitempty"` // keys that only the script's own code says are covered
}

// Handled is a failure, or a key, that does not count against the run.
type Handled struct {
	Step   int    `json:"step"` // -1 for a key alone
	Item   int    `json:"item"` // -1 for the whole step
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     int    `json:"by,omitempty"` // the step that made it good
}

// Missed is a failure that was delivered.
type Missed struct {
	Step     int    `json:"step"`
	Item     int    `json:"item"` // -1 for a step without items
	Key      string `json:"key,omitempty"`
	Kind     string `json:"kind"`
	Message  string `json:"message"` // of the last attempt
	Attempts int    `json:"attempts,omitempty"`
}
