package fleet

import (
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// compatible says whether a worker's version is at most one minor apart, and if not which side to update.
func compatible(mine, theirs, name string) error {
	if mine == theirs { // builds without a version, too
		return nil
	}
	a, aok := parseVersion(mine)
	b, bok := parseVersion(theirs)
	if !aok || !bok {
		return apierr.New(apierr.IncompatibleVersion, "%s runs loopkeeper %q and the coordinator %q: not both are versions", name, theirs, mine).
			WithNext("install the same release on both machines")
	}
	if a[0] == b[0] && a[1]-b[1] <= 1 && b[1]-a[1] <= 1 {
		return nil
	}
	old := "the coordinator"
	if b[0] < a[0] || b[0] == a[0] && b[1] < a[1] {
		old = name
	}
	return apierr.New(apierr.IncompatibleVersion, "%s runs loopkeeper %s, the coordinator %s: more than one minor version apart", name, theirs, mine).
		WithNext("update loopkeeper on " + old)
}

// parseVersion reads major and minor of a semantic version, with or without a leading v.
func parseVersion(s string) (v [2]int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	parts := strings.SplitN(s, ".", 3)
	if len(parts) != 3 {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return v, false
		}
		v[i] = n
	}
	return v, true
}
