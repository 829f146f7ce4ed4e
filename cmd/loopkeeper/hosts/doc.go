// Package hosts holds the tests of several machines in one house: the real programs on hosts that are Linux network
// namespaces on a bridge of their own, with cables that are pulled and addresses that change. It has no code of its own.
package hosts
