// Package durable holds the tests and measurements that prove what is promised of a crash, of an upgrade and of long runs, on the whole
// coordinator and on the program.
package durable
