package host

import (
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// below puts files below a folder.
func below(folder string, files map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range files {
		all[folder+"/"+name] = text
	}
	return all
}

const unlimited1 = "9223372036854771712\n" // how version 1 spells no limit: the largest number of whole pages

// What limits whom is in the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
func TestControlGroupLimits(t *testing.T) {
	const total, available = 64 << 30, 48 << 30
	const docker = "/docker/4c01db0b339c"
	v2 := map[string]string{"proc/self/cgroup": "0::/app/worker\n"}
	v1 := map[string]string{"proc/self/cgroup": "12:cpu,cpuacct:/x\n9:memory:" + docker + "\n1:name=systemd:/y\n"}
	group := func(limit, current, inactive string) map[string]string {
		return map[string]string{"memory.max": limit, "memory.current": current, "memory.stat": "anon 1\ninactive_file " + inactive + "\n"}
	}
	group1 := func(limit, usage, inactive, inherited string) map[string]string {
		return map[string]string{"memory.limit_in_bytes": limit, "memory.usage_in_bytes": usage,
			"memory.stat": "inactive_file 1\nhierarchical_memory_limit " + inherited + "\ntotal_inactive_file " + inactive + "\n"}
	}
	// A container's mounts: without a namespace of its own for control groups it is given its own group of the host's.
	mountOf := func(root, point, kind, options string) map[string]string {
		return map[string]string{"proc/self/mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda rw\n36 35 0:31 " + root + " " + point + " ro,nosuid shared:9 - " + kind + " cgroup rw," + options + "\n"}
	}
	const root = "sys/fs/cgroup"
	for name, c := range map[string]struct {
		files       []map[string]string
		total, free hwprobe.Bytes
		source      hwprobe.Source
	}{
		"no control groups":       {nil, hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		"max is no limit":         {[]map[string]string{v2, below(root, group("max\n", "1024\n", "0"))}, hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		"larger than the machine": {[]map[string]string{v2, below(root, group("99999999999999\n", "0\n", "0"))}, hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		"version 2: page cache that the kernel can drop is free (ollama#15474)": {[]map[string]string{v2, below(root, group("8589934592\n", "6442450944\n", "5368709120"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"version 2: a parent's tighter limit": {[]map[string]string{v2, below(root+"/app/worker", group("8589934592\n", "0\n", "0")), below(root+"/app", group("4294967296\n", "1073741824\n", "0"))},
			hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](3 << 30), hwprobe.SourceCgroup},
		"version 2: a parent's fuller limit": {[]map[string]string{v2, below(root+"/app/worker", group("4294967296\n", "0\n", "0")), below(root+"/app", group("8589934592\n", "7516192768\n", "0"))},
			hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](1 << 30), hwprobe.SourceCgroup},
		"version 2: use unknown": {[]map[string]string{v2, below(root, map[string]string{"memory.max": "8589934592\n"})},
			hwprobe.Known[uint64](8 << 30), hwprobe.Bytes{}, hwprobe.SourceCgroup},
		"version 2: a limit of nothing": {[]map[string]string{v2, below(root, group("0\n", "4096\n", "0"))},
			hwprobe.Bytes{}, hwprobe.Known[uint64](0), ""},
		"version 2: more used than allowed": {[]map[string]string{v2, below(root, group("8589934592\n", "8589938688\n", "0"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](0), hwprobe.SourceCgroup},
		"version 2 in a namespace: the container is the root": {[]map[string]string{{"proc/self/cgroup": "0::/\n"}, mountOf("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate"),
			below(root, group("8589934592\n", "1073741824\n", "0"))}, hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"version 2 in a namespace that the process is outside of": {[]map[string]string{{"proc/self/cgroup": "0::/../../other\n"}, below(root, group("8589934592\n", "1073741824\n", "0"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"version 1": {[]map[string]string{v1, below(root+"/memory"+docker, group1("8589934592\n", "6442450944\n", "5368709120", "8589934592"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"version 1: no limit": {[]map[string]string{v1, below(root+"/memory"+docker, group1(unlimited1, "6442450944\n", "0", "9223372036854771712"))},
			hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		"version 1: the limit of a parent that is out of sight": {[]map[string]string{v1, below(root+"/memory"+docker, group1(unlimited1, "1073741824\n", "0", "4294967296"))},
			hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](3 << 30), hwprobe.SourceCgroup},
		"version 1 in a container": {[]map[string]string{v1, mountOf(docker, "/sys/fs/cgroup/memory", "cgroup", "memory"), below(root+"/memory", group1("8589934592\n", "1073741824\n", "0", "8589934592"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"both versions: memory is in the first": {[]map[string]string{{"proc/self/cgroup": "9:memory:/a\n0::/a\n"}, mountOf("/", "/sys/fs/cgroup/unified", "cgroup2", "x"),
			below(root+"/memory/a", group1("8589934592\n", "1073741824\n", "0", "8589934592"))}, hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"mounted at the root": {[]map[string]string{v2, mountOf("/", "/", "cgroup2", "x"), below("app", group("8589934592\n", "1073741824\n", "0"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		// A machine on which the group of another service is mounted, too, as container engines do (man 5 proc, mountinfo).
		"another group is mounted beside": {[]map[string]string{v2, {"proc/self/mountinfo": "36 35 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n37 35 0:31 /other /run/other rw - cgroup2 cgroup rw\n"},
			below("run/other", group("1073741824\n", "0\n", "0")), below(root+"/app/worker", group("8589934592\n", "1073741824\n", "0"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		"its own group is mounted beside, without its parents": {[]map[string]string{v2, {"proc/self/mountinfo": "36 35 0:31 /app/worker /run/own rw - cgroup2 cgroup rw\n37 35 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"},
			below("run/own", group("8589934592\n", "0\n", "0")), below(root+"/app/worker", group("8589934592\n", "0\n", "0")), below(root+"/app", group("4294967296\n", "0\n", "0"))},
			hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](4 << 30), hwprobe.SourceCgroup},
		"mounted elsewhere": {[]map[string]string{v2, mountOf("/", "/mnt/groups", "cgroup2", "x"), below("mnt/groups/app/worker", group("8589934592\n", "1073741824\n", "0"))},
			hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
	} {
		files := fstest.MapFS{}
		for _, part := range c.files {
			for name, text := range part {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		p, warnings := Pool(files, hwprobe.Host{TotalBytes: hwprobe.Known[uint64](total), AvailableBytes: hwprobe.Known[uint64](available)})
		if p.TotalBytes != c.total || p.FreeBytes != c.free || p.TotalSource != c.source {
			t.Errorf("%s: pool %+v, want total %v, free %v from %s", name, p, c.total, c.free, c.source)
		}
		if limited := len(warnings) == 1 && warnings[0].Code == hwprobe.WarnMemoryLimited; limited != (c.source != hwprobe.SourceOS) {
			t.Errorf("%s: warnings %+v", name, warnings)
		}
	}
}

// A machine that does not tell how much it has is not limited by a number without a measure.
func TestControlGroupOfAMachineOfUnknownSize(t *testing.T) {
	files := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("1024\n")}}
	if p, warnings := Pool(files, hwprobe.Host{}); p.TotalBytes != (hwprobe.Bytes{}) || p.TotalSource != "" || warnings != nil {
		t.Errorf("pool %+v, %v", p, warnings)
	}
}

// FuzzPool holds that no file of a control group makes a number larger than the machine, or out of nothing.
func FuzzPool(f *testing.F) {
	f.Add("0::/app\n", "36 35 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "8589934592\n", "4096\n", "inactive_file 1024\n")
	f.Add("9:memory:/docker/1\n0::/\n", "36 35 0:31 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "max", "", "hierarchical_memory_limit 9\n")
	f.Add(":memory:\n0::/a", "6 5 0:31 / / rw - cgroup2 cgroup2 rw", "max", "", "hierarchical_memory_limit 9\n")
	f.Fuzz(func(t *testing.T, groups, mountinfo, limit, used, stat string) {
		const total, available = 64 << 30, 48 << 30
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(groups)}, "proc/self/mountinfo": {Data: []byte(mountinfo)}}
		for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/app/", "sys/fs/cgroup/memory/"} {
			for name, text := range map[string]string{"memory.max": limit, "memory.limit_in_bytes": limit, "memory.current": used,
				"memory.usage_in_bytes": used, "memory.stat": stat} {
				root[dir+name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		p, _ := Pool(root, hwprobe.Host{TotalBytes: hwprobe.Known[uint64](total), AvailableBytes: hwprobe.Known[uint64](available)})
		if n, known := p.TotalBytes.Value(); n > total || !known && p.FreeBytes.Or(0) != 0 { // a limit of 0 is no total
			t.Errorf("total %v of %d", p.TotalBytes, uint64(total))
		}
		if n, known := p.FreeBytes.Value(); known && n > available {
			t.Errorf("free %d of %d", n, uint64(available))
		}
	})
}
