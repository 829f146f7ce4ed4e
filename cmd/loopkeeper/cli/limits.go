package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// registerLimits adds the flags that bound a run; otherwise says what holds without them.
func registerLimits(c *cobra.Command, active *time.Duration, limits *map[string]int64, otherwise string) {
	c.Flags().DurationVar(active, "time-limit", 0, "most active `TIME` of the run, such as 2h; whole seconds (default "+otherwise+")")
	c.Flags().Var(amounts{limits}, "limit", "most that the run may use, `NAME=N`: tokens, calls, artifact_bytes, spawn_depth or active_seconds; 0: any; may be repeated (default "+otherwise+")")
}

// limitTime refuses a time that would mean no limit: the coordinator counts whole seconds.
func limitTime(limit time.Duration) error {
	if limit != 0 && limit < time.Second {
		return usagef("--time-limit %s: want 1s or more", limit)
	}
	return nil
}

// amounts are the values of a flag NAME=N, with commas between several; each name is given once.
type amounts struct{ all *map[string]int64 }

// Set implements pflag.Value.
func (a amounts) Set(text string) error {
	if *a.all == nil {
		*a.all = map[string]int64{}
	}
	for _, one := range strings.Split(text, ",") {
		name, number, ok := strings.Cut(one, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if _, given := (*a.all)[name]; given {
			return fmt.Errorf("%s is given twice", name)
		}
		if !ok || err != nil || name == "" {
			return fmt.Errorf("want NAME=N, such as tokens=500000")
		}
		(*a.all)[name] = n
	}
	return nil
}

// String implements pflag.Value.
func (a amounts) String() string {
	var out []string
	if a.all != nil {
		for _, name := range slices.Sorted(maps.Keys(*a.all)) {
			out = append(out, fmt.Sprintf("%s=%d", name, (*a.all)[name]))
		}
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (amounts) Type() string { return "NAME=N" }
