//go:build windows

package windows

import (
	"encoding/hex"
	"fmt"

	"golang.org/x/sys/windows/registry"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// registryKeys reads the keys that lie depth levels below root and have any of the values.
func registryKeys(root string, depth int, values []string) ([]RegistryKey, error) {
	keys := []RegistryKey{}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, root, registry.READ)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", root, err)
	}
	defer key.Close()
	collect(key, "", depth, values, &keys)
	return keys, nil
}

// collect leaves out keys that it may not open: Windows keeps some for itself.
func collect(key registry.Key, name string, depth int, values []string, keys *[]RegistryKey) {
	if depth == 0 {
		k := RegistryKey{Name: name, Values: map[string]RegistryValue{}}
		for _, v := range values {
			if value, found := registryValue(key, v); found {
				k.Values[v] = value
			}
		}
		if len(k.Values) > 0 {
			*keys = append(*keys, k)
		}
		return
	}
	names, err := key.ReadSubKeyNames(-1)
	if err != nil {
		return
	}
	for _, n := range names {
		below, err := registry.OpenKey(key, n, registry.READ)
		if err != nil {
			continue
		}
		full := n
		if name != "" {
			full = name + `\` + n
		}
		collect(below, full, depth-1, values, keys)
		below.Close()
	}
}

func registryValue(key registry.Key, name string) (RegistryValue, bool) {
	size, kind, err := key.GetValue(name, nil)
	if err != nil {
		return RegistryValue{}, false
	}
	switch kind {
	case registry.DWORD, registry.QWORD:
		n, _, err := key.GetIntegerValue(name)
		return RegistryValue{Number: hwprobe.Known(n)}, err == nil
	case registry.SZ, registry.EXPAND_SZ:
		text, _, err := key.GetStringValue(name)
		return RegistryValue{Text: text}, err == nil
	}
	raw := make([]byte, size)
	if size == 0 {
		return RegistryValue{}, false
	}
	n, _, err := key.GetValue(name, raw)
	if err != nil {
		return RegistryValue{}, false
	}
	return RegistryValue{Hex: hex.EncodeToString(raw[:n])}, true
}
