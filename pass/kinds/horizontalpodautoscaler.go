package kinds

// Refuses is a kind that never crosses, whatever the policy says.
type Refuses interface {
	// Refused says why, and what to do instead.
	Refused() string
}

// horizontalPodAutoscaler: scales a workload of the tenant's, which is not on the host; only its Pods are.
type horizontalPodAutoscaler struct{ Generic }

// Refused points to the tenant.
func (h horizontalPodAutoscaler) Refused() string {
	return "a HorizontalPodAutoscaler does not cross: the workload that it scales is in the tenant, whose own controller manager does the scaling; take the kind out of the policy"
}
