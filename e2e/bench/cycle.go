package main

import (
	"context"
	"fmt"
	"time"
)

// objectsBench is a measurement of a subject on its way.
type objectsBench struct {
	objects
	*world
	first, deleted *collected
	// The present cycle's.
	place    place
	floor    *floor
	loop     *loop
	template []byte
	revision int
}

// begin makes a cycle's place on the host, and places for what the floor and the loop write.
func (b *objectsBench) begin(ctx context.Context, cycle int) (err error) {
	b.place = place{namespace: fmt.Sprintf("cycle-%d", cycle), tenant: fmt.Sprintf("t%d", cycle)}
	if err := b.applyToHost(ctx, b.place.manifests(b.kind)...); err != nil {
		return err
	}
	if b.floor, err = b.newFloor(ctx, b.kind, fmt.Sprintf("floor-%d", cycle)); err != nil {
		return err
	}
	loops := fmt.Sprintf("loop-%d", cycle)
	b.loop = newLoop(b.host.client, b.tenant.client, b.kind, loops, b.place.mirror)
	return makeNamespace(ctx, b.host.admin, loops)
}

// onePass runs a pass, directly or through the proxies.
func (b *objectsBench) onePass(ctx context.Context, proxied bool, wanted want) (*run, error) {
	kubeconfig := b.tenant.direct
	if proxied {
		kubeconfig = b.tenant.proxied
	}
	if err := b.applyToHost(ctx, b.place.access(kubeconfig)); err != nil {
		return nil, err
	}
	wanted.passes = 1
	return b.pass(ctx, b.place, proxied, wanted)
}

func (b *objectsBench) firstPass(ctx context.Context, proxied bool) error {
	r, err := b.onePass(ctx, proxied, want{create: b.count})
	if err != nil {
		return err
	}
	b.first.add(r)
	if b.template, err = b.mirrorTemplate(ctx, b.place, b.kind); err != nil {
		return err
	}
	wrote, err := b.sinceThen(ctx, records{})
	if err != nil {
		return err
	}
	b.first.addRecord(wrote, b.count)
	floor, err := b.floor.writes(ctx, b.count, b.floor.creates(b.template, min(b.count, floorPart)), wrote)
	if err != nil {
		return err
	}
	loop, err := b.loop.sync(ctx, b.loopPart, b.count)
	if err != nil || proxied {
		return err
	}
	b.first.addFloor(0, floor)
	b.first.addLoop(loop)
	b.progress("first", r, floor, loop)
	return nil
}

// sinceThen is what the pass has recorded since.
func (b *objectsBench) sinceThen(ctx context.Context, before records) (written, error) {
	after, err := b.recorded(ctx, b.place)
	if err != nil {
		return written{}, err
	}
	return writtenSince(before, after, b.place.tenant)
}

// standing measures the rows of a state in which all mirrors are there.
func (b *objectsBench) standing(ctx context.Context) ([]Row, error) {
	if b.kind.resource == pods.resource {
		// What the host has made of the Pods is reported to the tenant once.
		if _, err := b.run(ctx, b.environment(b.place, false), "pass"); err != nil {
			return nil, err
		}
	}
	quiet, err := b.quiet(ctx)
	if err != nil {
		return nil, fmt.Errorf("quiet: %w", err)
	}
	rows := []Row{quiet}
	if b.changing {
		for _, c := range []struct {
			name    string
			changes int
		}{{"changed-1%", max(1, b.count/100)}, {"one-change", 1}} {
			row, err := b.changed(ctx, c.name, c.changes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (b *objectsBench) quiet(ctx context.Context) (Row, error) {
	c := b.row("quiet", 0)
	loop, part := b.loop, b.loopPart
	if b.wholeLoop {
		// It has a part of the mirrors only. The pass has all, and the loop finds nothing to change in them.
		loop, part = newLoop(b.host.client, b.tenant.client, b.kind, b.place.namespace, b.place.mirror), b.count
		c.row.LoopExtrapolated = false
	}
	for sample := range b.samples + 1 {
		floor, err := b.floor.quiet(ctx, b.place.namespace)
		if err != nil {
			return Row{}, err
		}
		r, err := b.onePass(ctx, sample == 0, want{unchanged: b.count})
		if err != nil {
			return Row{}, err
		}
		c.add(r)
		if sample == 0 {
			continue
		}
		took, err := loop.sync(ctx, part, b.count)
		if err != nil {
			return Row{}, err
		}
		c.addFloor(floor, 0)
		c.addLoop(took)
		b.progress("quiet", r, floor, took)
	}
	return c.done(), nil
}

// changed measures passes that find some of the tenant's objects changed.
func (b *objectsBench) changed(ctx context.Context, name string, changes int) (Row, error) {
	c := b.row(name, changes)
	for sample := range b.samples + 1 {
		b.revision++
		if err := b.change(ctx, b.count, changes, b.revision); err != nil {
			return Row{}, err
		}
		before, err := b.recorded(ctx, b.place)
		if err != nil {
			return Row{}, err
		}
		reads, err := b.floor.quiet(ctx, b.place.namespace)
		if err != nil {
			return Row{}, err
		}
		r, err := b.onePass(ctx, sample == 0, want{update: changes, unchanged: b.count - changes})
		if err != nil {
			return Row{}, err
		}
		c.add(r)
		wrote, err := b.sinceThen(ctx, before)
		if err != nil {
			return Row{}, err
		}
		c.addRecord(wrote, changes)
		updates, err := b.floor.updates(b.template, b.place, min(b.count, floorPart), changes, b.revision)
		if err != nil {
			return Row{}, err
		}
		writes, err := b.floor.writes(ctx, changes, updates, wrote)
		if err != nil {
			return Row{}, err
		}
		loop, err := b.loop.sync(ctx, b.loopPart, b.count)
		if err != nil {
			return Row{}, err
		}
		if sample > 0 {
			c.addFloor(reads, writes)
			c.addLoop(loop)
			b.progress(name, r, reads+writes, loop)
		}
	}
	return c.done(), nil
}

// deleteAll deletes all objects of the tenant, and measures the pass that deletes their mirrors. Unless it is the last
// time, it lays new objects.
func (b *objectsBench) deleteAll(ctx context.Context, proxied, last bool) error {
	if err := b.remove(ctx, b.count); err != nil {
		return err
	}
	if err := b.confirm(ctx); err != nil {
		return err
	}
	before, err := b.recorded(ctx, b.place)
	if err != nil {
		return err
	}
	r, err := b.onePass(ctx, proxied, want{delete: b.count})
	if err != nil {
		return err
	}
	b.deleted.add(r)
	wrote, err := b.sinceThen(ctx, before)
	if err != nil {
		return err
	}
	b.deleted.addRecord(wrote, b.count)
	reads, err := b.floor.quiet(ctx, b.place.namespace)
	if err != nil {
		return err
	}
	writes, err := b.floor.writes(ctx, b.count, b.floor.deletes(b.place, min(b.count, floorPart)), wrote)
	if err != nil {
		return err
	}
	loop, err := b.loop.sync(ctx, b.loopPart, b.count)
	if err != nil {
		return err
	}
	if !proxied {
		b.deleted.addFloor(reads, writes)
		b.deleted.addLoop(loop)
		b.progress("deleted", r, reads+writes, loop)
	}
	if last {
		return nil
	}
	return b.lay(ctx, b.kind, b.count)
}

// confirm lets the deletes of everything through the guards, as a person does: by the id of exactly this plan.
func (b *objectsBench) confirm(ctx context.Context) error {
	planned, err := b.run(ctx, b.environment(b.place, false), "plan")
	if err != nil {
		return err
	}
	if len(planned.Passes) != 1 {
		return fmt.Errorf("one tenant has %d plans", len(planned.Passes))
	}
	if planned.Passes[0].PlanID == "" {
		return nil // too few for the guards; what else went wrong the pass tells
	}
	manifests := b.place.manifests(b.kind)
	cluster := manifests[len(manifests)-1]
	cluster["metadata"].(document)["annotations"] = document{"tenantplane.io/confirm-deletes": planned.Passes[0].PlanID}
	return b.applyToHost(ctx, cluster)
}

func (b *objectsBench) progress(name string, r *run, floor, loop time.Duration) {
	fmt.Fprintf(b.log, "%s/%s: %.2f s, floor %.2f s, loop %.1f s\n", b.name(), name, r.Wall.Seconds(), floor.Seconds(), loop.Seconds())
}
