package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// subject is what is measured on one pair of API servers.
type subject interface {
	name() string
	measure(ctx context.Context, runner string, log io.Writer) ([]Row, error)
}

// objects is a subject of one tenant with objects of one kind.
type objects struct {
	kind  objectKind
	count int
	// cycles is how often all of them are mirrored for the first time and deleted, samples how often each other row is
	// measured, in the last cycle.
	cycles, samples int
	// observed has one more cycle before the others go through the proxies.
	observed bool
	// deleting has a row in which all are deleted, changing rows in which some change.
	deleting, changing bool
	// loopPart is how many objects the loop is measured on; wholeLoop measures it over a quiet state on all.
	loopPart  int
	wholeLoop bool
	log       io.Writer
}

// usualSizes are the numbers of ConfigMaps that are measured, and how many of them suit Pods.
var usualSizes = []int{1000, 10000, 100000}

const usualPods = 2

// subjects are what the options ask for.
func subjects(o options) []subject {
	configMaps, pods := configMaps, pods
	if o.direction != "" {
		configMaps.direction, pods.direction = o.direction, o.direction
	}
	mapSizes, podSizes, tenantSizes, part := usualSizes, usualSizes[:usualPods], []int{200}, loopPart
	if o.quick {
		mapSizes, podSizes, tenantSizes, part = usualSizes[:2], usualSizes[:1], []int{50}, quickLoopPart
	}
	if o.sizes != nil {
		mapSizes, podSizes, tenantSizes = o.sizes, o.sizes, o.sizes
	}
	wanted := func(name string) bool { return o.only == "" || slices.Contains(strings.Split(o.only, ","), name) }
	var all []subject
	for _, size := range mapSizes {
		if wanted(configMaps.resource) {
			s := objects{kind: configMaps, count: size, cycles: o.samples, samples: o.samples,
				observed: true, deleting: true, changing: true, loopPart: part, wholeLoop: !o.quick && size <= floorPart}
			if o.quick && size > usualSizes[0] { // one first pass, since the others of this size need it
				s.cycles, s.observed, s.deleting = 1, false, false
			}
			all = append(all, s)
		}
	}
	for _, size := range podSizes {
		if wanted(pods.resource) {
			all = append(all, objects{kind: pods, count: size, cycles: o.samples, samples: o.samples, observed: true, loopPart: part})
		}
	}
	for _, size := range tenantSizes {
		if wanted(tenantsName) {
			all = append(all, tenants{count: size, samples: o.samples})
		}
	}
	return all
}

func (s objects) name() string { return fmt.Sprintf("%s/%d", s.kind.resource, s.count) }

func (s objects) measure(ctx context.Context, runner string, log io.Writer) (_ []Row, err error) {
	w, err := startWorld(ctx, runner, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	s.log = log
	b := &objectsBench{objects: s, world: w, first: s.row("first", s.count), deleted: s.row("deleted", s.count)}
	if err := b.lay(ctx, s.kind, s.count); err != nil {
		return nil, err
	}
	cycles := s.cycles
	if s.observed {
		cycles++
	}
	var rows []Row
	for cycle := range cycles {
		if err := b.begin(ctx, cycle); err != nil {
			return nil, err
		}
		if err := b.firstPass(ctx, s.observed && cycle == 0); err != nil {
			return nil, fmt.Errorf("first pass: %w", err)
		}
		if cycle == cycles-1 {
			if rows, err = b.standing(ctx); err != nil {
				return nil, err
			}
		}
		if s.deleting {
			if err := b.deleteAll(ctx, s.observed && cycle == 0, cycle == cycles-1); err != nil {
				return nil, fmt.Errorf("all deleted: %w", err)
			}
		}
	}
	rows = append([]Row{b.first.done()}, rows...)
	if s.deleting {
		rows = append(rows, b.deleted.done())
	}
	return rows, nil
}

func (s objects) row(name string, changes int) *collected {
	return &collected{row: Row{
		Name: s.name() + "/" + name, Pairs: s.count, Changes: changes, Tenants: 1,
		FloorExtrapolated: changes > floorPart, LoopExtrapolated: s.count > s.loopPart,
	}}
}
