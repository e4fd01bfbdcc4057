//! Who may do what: roles, principals and the tokens that prove them.
//!
//! Tokens are kept as digests only. The rule of sight is here once: users see their own jobs,
//! operators, viewers, approvers and the internal role their tenant, admins everything.

use crate::id::TokenId;
use crate::job::Job;
use crate::name::{TenantId, UserId};
use crate::time::Timestamp;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Submit jobs, see and cancel one's own.
    Submitter = 0,
    /// Pull jobs and report on them.
    Worker = 1,
    /// Read everything of the tenant.
    Viewer = 2,
    /// Cancel, pause, requeue, propose a discard, within the tenant.
    Operator = 3,
    /// Approve or reject what another person proposed.
    Approver = 4,
    /// Use the internal replay routes.
    Internal = 5,
    /// Everything, in every tenant.
    Admin = 6,
}

impl Role {
    /// Every role, in the order of the documentation.
    pub const ALL: [Role; 7] = [
        Role::Submitter,
        Role::Worker,
        Role::Viewer,
        Role::Operator,
        Role::Approver,
        Role::Internal,
        Role::Admin,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Submitter => "submitter",
            Role::Worker => "worker",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Internal => "internal",
            Role::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(pub u8);

impl Roles {
    /// The set of the given roles.
    pub fn of(roles: &[Role]) -> Self {
        Self(roles.iter().fold(0, |bits, role| bits | (1 << *role as u8)))
    }

    /// Whether `role` is in the set.
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// Whether the set has one of `roles` or the admin role, which stands for all but `internal`.
    pub fn any(self, roles: &[Role]) -> bool {
        let stands_for = |role: Role| role != Role::Internal && self.has(Role::Admin);
        roles.iter().any(|role| self.has(*role) || stands_for(*role))
    }

    /// The roles in the set, in documentation order.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

/// Whoever makes a call, after the token was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant the token belongs to.
    pub tenant: TenantId,
    /// The person or service the token belongs to.
    pub user: UserId,
    /// What the token allows.
    pub roles: Roles,
    /// The token itself, for the audit trail and the two-person rule.
    pub token: TokenId,
    /// When the token was issued.
    pub token_issued_at: Timestamp,
    /// Who issued the token.
    pub token_issued_by: UserId,
    /// With which token, as far as it is known.
    pub token_issued_with: Option<TokenId>,
}

/// How far a principal sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Every tenant.
    Everything,
    /// All of its own tenant.
    Tenant,
    /// What it owns itself.
    Own,
}

impl Sight {
    /// Each of these roles sees all of its tenant.
    pub const TENANT_ROLES: &[Role] =
        &[Role::Viewer, Role::Operator, Role::Approver, Role::Internal];
}

impl Principal {
    /// Whether this principal may act in every tenant.
    pub fn is_admin(&self) -> bool {
        self.roles.has(Role::Admin)
    }

    /// This principal acting in one tenant: whoever may act in every tenant does there what an
    /// admin does, and nothing elsewhere. `None` if the tenant is not this principal's.
    pub fn within(self, tenant: TenantId) -> Option<Principal> {
        if self.is_admin() {
            let mut roles = Roles::of(&[
                Role::Submitter,
                Role::Worker,
                Role::Viewer,
                Role::Operator,
                Role::Approver,
            ]);
            if self.roles.has(Role::Internal) {
                roles = Roles(roles.0 | Roles::of(&[Role::Internal]).0);
            }
            return Some(Principal { tenant, roles, ..self });
        }
        (tenant == self.tenant).then_some(self)
    }

    /// How far this principal sees.
    pub fn sight(&self) -> Sight {
        if self.is_admin() {
            Sight::Everything
        } else if self.roles.any(Sight::TENANT_ROLES) {
            Sight::Tenant
        } else {
            Sight::Own
        }
    }

    /// Whether this principal may read what `user` of `tenant` owns.
    pub fn can_see(&self, tenant: &TenantId, user: &UserId) -> bool {
        match self.sight() {
            Sight::Everything => true,
            Sight::Tenant => *tenant == self.tenant,
            Sight::Own => *tenant == self.tenant && *user == self.user,
        }
    }

    /// Whether this principal may read `job`.
    pub fn can_see_job(&self, job: &Job) -> bool {
        self.can_see(&job.tenant, &job.user)
    }

    /// Whether this principal may cancel or otherwise steer what `user` of `tenant` owns.
    pub fn can_steer(&self, tenant: &TenantId, user: &UserId) -> bool {
        self.is_admin()
            || (*tenant == self.tenant
                && ((*user == self.user && self.roles.has(Role::Submitter))
                    || self.roles.has(Role::Operator)))
    }
}

/// An access token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its public name.
    pub id: TokenId,
    /// SHA-256 of the secret part.
    pub digest: [u8; 32],
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The person or service it belongs to.
    pub user: UserId,
    /// What it allows.
    pub roles: Roles,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Who issued it.
    pub issued_by: UserId,
    /// With which token; unknown for the first admin's and for tokens of older versions.
    pub issued_with: Option<TokenId>,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Stops the token for good. The first time counts.
    pub fn revoke(&mut self, at: Timestamp) {
        self.revoked_at.get_or_insert(at);
    }

    /// The same token, ending at `at` unless it ends before. One that was revoked stays so.
    #[must_use]
    pub fn ending_by(&self, at: Timestamp) -> Token {
        let end = self.expires_at.map_or(at, |end| end.min(at));
        Token { expires_at: Some(end), ..self.clone() }
    }

    /// Whether it may act in that tenant.
    pub fn reaches(&self, tenant: &TenantId) -> bool {
        self.roles.has(Role::Admin) || self.tenant == *tenant
    }

    /// Whether the token works at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// The principal this token proves.
    pub fn principal(&self) -> Principal {
        Principal {
            tenant: self.tenant.clone(),
            user: self.user.clone(),
            roles: self.roles,
            token: self.id,
            token_issued_at: self.issued_at,
            token_issued_by: self.issued_by.clone(),
            token_issued_with: self.issued_with,
        }
    }
}
